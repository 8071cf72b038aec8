# Shell functions about the MPIs that Tailback is tested with; sourced by the ci/mpi-* scripts. Needs bash.
#
# A flavour is one MPI: openmpi4 and mpich4 are the distribution's packages, openmpi5, mpich5 and intelmpi come from PyPI
# and live in a cache folder outside the repository. Flavours of one ABI share a build (mpi_builder): Open MPI 4 and 5 are
# libmpi.so.40 with the same symbols, MPICH and Intel MPI libmpi.so.12 with the same handles.

MPI_FLAVOURS="openmpi4 mpich4 openmpi5 mpich5 intelmpi"
MPI_CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/tailback/mpi"
MPI_TARGET_ROOT=$(realpath -m "${MPI_TARGET_ROOT:-${CARGO_TARGET_DIR:-target}}")
# mpirun refuses to start as root unless told twice; in a container there is often nobody else.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

die() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

# pinned PACKAGE...: their lines of ci/requirements.txt, for pip.
pinned() {
    local package
    for package in "$@"; do
        grep "^$package==" ci/requirements.txt || die "$package is not in ci/requirements.txt"
    done
}

# The flavour's compiler wrapper.
mpi_cc() {
    case $1 in
    openmpi4) echo mpicc.openmpi ;;
    mpich4) echo mpicc.mpich ;;
    openmpi5 | mpich5 | intelmpi) echo "$MPI_CACHE/$1/bin/mpicc" ;;
    *) die "unknown MPI flavour '$1' (one of: $MPI_FLAVOURS)" ;;
    esac
}

# The flavour's launcher.
mpi_launcher() {
    case $1 in
    openmpi4) echo mpirun.openmpi ;;
    mpich4) echo mpirun.mpich ;;
    *) echo "$MPI_CACHE/$1/bin/mpirun" ;;
    esac
}

# The flavour whose headers and compiler wrapper are built with for this one.
mpi_builder() {
    case $1 in
    openmpi*) echo openmpi4 ;;
    *) echo mpich5 ;;
    esac
}

# Where the flavour's library is, under the name that all of its ABI have; nothing for the system's own place.
mpi_libraries() {
    case $1 in
    openmpi4) ;;
    *) echo "$MPI_CACHE/$1/lib" ;;
    esac
}

# Sets the environment in which programs of a flavour are built and run. All flavours share a target folder, and in it what
# does not depend on MPI; see mpi_cargo.
mpi_select() {
    MPICC=$(mpi_cc "$1")
    export MPICC
    command -v "$MPICC" >/dev/null || die "$1 is not installed ($MPICC not found): run ci/mpi-setup $1"
    MPI_SELECTED=$1
    export CARGO_TARGET_DIR="$MPI_TARGET_ROOT/mpi"
    LD_LIBRARY_PATH=$(mpi_libraries "$1")
    if [ -n "$LD_LIBRARY_PATH" ]; then export LD_LIBRARY_PATH; else unset LD_LIBRARY_PATH; fi
    # Its compiler wrapper and its launcher ask where it is.
    unset I_MPI_ROOT
    [ "$1" != intelmpi ] || export I_MPI_ROOT="$MPI_CACHE/$1"
}

# mpi_cargo ARGUMENTS...: cargo for the ABI of the selected flavour. The bindings do not notice that MPICC has changed, so for
# them and for our crate on top each ABI has a kind of debug information of its own: the code is the same, but cargo keeps
# what is built with one apart from the other. Programs are found by mpi_program and mpi_product: those in debug/ are of the
# ABI that was built last.
mpi_cargo() (
    local builder kind profile settings=()
    builder=$(mpi_builder "$MPI_SELECTED")
    mpi_select "$builder"
    case $builder in
    openmpi4) kind=line-tables-only ;;
    *) kind=line-directives-only ;;
    esac
    for profile in dev release; do
        settings+=(--config "profile.$profile.package.mpi-sys.debug='$kind'")
        settings+=(--config "profile.$profile.package.tailback-mpi.debug='$kind'")
    done
    cargo "${settings[@]}" "$@"
)

# mpi_program NAME CARGO-ARGUMENTS...: builds a program and prints where it is; warnings go to stderr.
mpi_program() {
    local name=$1
    shift
    mpi_cargo "$@" --message-format=json-render-diagnostics | sed -n 's|.*"executable":"\([^"]*/'"$name"'\(-[0-9a-f]*\)\{0,1\}\)".*|\1|p' | tail -n 1
}

# mpi_product FEATURES [--release]: builds the benchmark and prints where it stays for this flavour. One at a time: cargo puts
# the program where another flavour's build would replace it before it is copied. "all" is what steps with a library share: all
# features but kernels for AVX, which take half a minute to compile, and of the packages of the unit tests, with a test, so that
# crates of others have the features that they have there, and are not compiled again.
mpi_product() (
    mkdir -p "$CARGO_TARGET_DIR/$MPI_SELECTED"
    exec 9>"$CARGO_TARGET_DIR/.product"
    flock 9
    kept="$CARGO_TARGET_DIR/$MPI_SELECTED/tailback${2:+-release}"
    how=(build -p tailback --no-default-features --features "$1" ${2:+"$2"})
    [ "$1" != all ] || how=(test --no-run --test lab_traffic --features tailback/mpi,tailback/libfabric,tailback/verbs,tailback/png)
    built=$(mpi_program tailback "${how[@]}" -q --locked)
    [ -x "$built" ] || exit 1
    # Another step may be running it.
    cmp -s "$built" "$kept" || { cp "$built" "$kept.$$" && mv "$kept.$$" "$kept"; }
    echo "$kept"
)

# mpi_run FLAVOUR RANKS SECONDS COMMAND...: several ranks a core, where MPI can make them yield, under a limit.
mpi_run() {
    local flavour=$1 ranks=$2 limit=$3
    shift 3
    case $flavour in
    openmpi4) timeout "$limit" "$(mpi_launcher "$flavour")" --oversubscribe --bind-to none \
        --mca mpi_yield_when_idle 1 -n "$ranks" "$@" ;;
    # PyPI's build has a UCX component that complains on every window of a machine without UCX.
    openmpi5) timeout "$limit" "$(mpi_launcher "$flavour")" --map-by :OVERSUBSCRIBE --bind-to none \
        --mca mpi_yield_when_idle 1 --mca osc ^ucx -n "$ranks" "$@" ;;
    intelmpi) timeout "$limit" env I_MPI_THREAD_YIELD=2 "$(mpi_launcher "$flavour")" -bind-to none -n "$ranks" "$@" ;;
    *) timeout "$limit" "$(mpi_launcher "$flavour")" -bind-to none -n "$ranks" "$@" ;;
    esac
}

# mpi_run_bound FLAVOUR RANKS SECONDS COMMAND...: a core per rank, spinning, for measurements.
mpi_run_bound() {
    local flavour=$1 ranks=$2 limit=$3
    shift 3
    case $flavour in
    openmpi4) timeout "$limit" "$(mpi_launcher "$flavour")" --bind-to core -n "$ranks" "$@" ;;
    openmpi5) timeout "$limit" "$(mpi_launcher "$flavour")" --bind-to core --mca osc ^ucx -n "$ranks" "$@" ;;
    *) timeout "$limit" "$(mpi_launcher "$flavour")" -bind-to core -n "$ranks" "$@" ;;
    esac
}

# mpi_build KIND NAME CARGO-ARGUMENTS...: builds one test or bench of the crate and prints the path of its executable.
mpi_build() {
    local kind=$1 name=$2
    shift 2
    mpi_program "$name" "$kind" -q --locked --no-run -p tailback-mpi "--$kind" "$name" "$@"
}
