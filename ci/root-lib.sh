# Shell functions for clean roots; sourced by ci/package. Needs bash and root.
#
# A root is a folder with Debian in it, made of the package sources that this machine's apt is configured for, and entered with
# mounts and processes of its own, which end with it. Not by chroot, which the hosts of an emulated cluster would leave.

# root_make FOLDER PACKAGE...: the essential packages, and those.
root_make() {
  local folder=$1 file sources=()
  shift
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -s "$file" ] || sources+=("$file")
  done
  # shellcheck source=/dev/null
  mmdebstrap --quiet --variant=essential --include="$(IFS=,; echo "$*")" \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$folder" "${sources[@]}"
}

# root_run FOLDER COMMAND...: as root and with no environment, in /. Nothing outside of FOLDER is seen but devices; its /tmp and
# /run are empty and go at the end.
root_run() {
  # shellcheck disable=SC2016 # the variables are the inner shell's
  unshare --mount --pid --fork --kill-child bash -c '
    set -e
    root=$1
    shift
    mkdir -p "$root"/{proc,sys,dev,tmp,run}
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmp "$root/tmp"
    mount -t tmpfs run "$root/run"
    cd "$root"
    exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp TERM=dumb "$(command -v python3)" -c "
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
pivot_root = {\"x86_64\": 155, \"aarch64\": 41}[platform.machine()]
# The new root and the old one in the same place, of which the old one is taken away.
if libc.syscall(pivot_root, b\".\", b\".\") or libc.umount2(b\".\", 2):
    sys.exit(f\"root: {os.strerror(ctypes.get_errno())}\")
os.chdir(\"/\")
os.execvp(sys.argv[1], sys.argv[1:])
" "$@"
  ' bash "$@"
}
