# Tailback for Spack: a package of a repository of one's own. In a clone of Tailback:
#
#   spack repo create ~/tailback-repo tailback
#   cp -r packaging/spack/tailback ~/tailback-repo/packages/
#   spack repo add ~/tailback-repo
#   spack dev-build --source-path $PWD tailback@main +mpi
#
# Crates come from the registry that cargo is set up for, in the versions of Cargo.lock.

import os

from spack.package import *


class Tailback(Package):
    """Measures what congestion does to HPC and data-centre networks: canary
    kernels idle and under load, over MPI, TCP, libfabric or verbs."""

    license("MIT OR Apache-2.0", checked_by="tailback")

    version("main")

    variant("mpi", default=True, description="MPI's messages, windows and collectives")
    variant("libfabric", default=False, description="Raw fabrics through libfabric")
    variant("verbs", default=False, description="InfiniBand and RoCE without a library in between")
    variant("png", default=False, description="Plots of reports as PNG files")
    variant("avx", default=False, description="Faster kernels for `tailback hpcc`")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("mpi", when="+mpi")
    # Loaded at run time, by name: it must be in what ranks see, hence the paths below.
    depends_on("libfabric@1.17:", when="+libfabric")
    depends_on("rdma-core", when="+verbs")
    for _native in ("mpi", "libfabric", "verbs"):
        # Bindings are made from the installed headers.
        depends_on("llvm+clang", type="build", when=f"+{_native}")
    depends_on("iproute2", type="run")

    # Cargo's feature of each variant.
    features = {"mpi": "mpi", "libfabric": "libfabric", "verbs": "verbs", "png": "png", "avx": "hpcc-avx"}

    def wanted(self):
        """Features of this spec, in one word."""
        return ",".join(feature for name, feature in self.features.items() if f"+{name}" in self.spec)

    def loaded(self):
        """Folders of libraries that are opened by name at run time."""
        names = {"libfabric": "libfabric", "verbs": "rdma-core"}
        return [self.spec[name].prefix.lib for variant, name in names.items() if f"+{variant}" in self.spec]

    def setup_build_environment(self, env):
        if "+mpi" in self.spec:
            env.set("MPICC", self.spec["mpi"].mpicc)
        if any(f"+{name}" in self.spec for name in ("mpi", "libfabric", "verbs")):
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def setup_run_environment(self, env):
        for folder in self.loaded():
            env.append_path("LD_LIBRARY_PATH", folder)

    def install(self, spec, prefix):
        cargo = which("cargo")
        options = ["install", "--locked", "--path", ".", "--root", prefix]
        if self.wanted():
            options += ["--features", self.wanted()]
        cargo(*options)
        tailback = Executable(os.path.join(prefix.bin, "tailback"))
        tailback("man", os.path.join(prefix, "share", "man", "man1"))
        places = {
            "bash": os.path.join("bash-completion", "completions", "tailback"),
            "zsh": os.path.join("zsh", "site-functions", "_tailback"),
            "fish": os.path.join("fish", "vendor_completions.d", "tailback.fish"),
        }
        for shell, place in places.items():
            path = os.path.join(prefix, "share", place)
            mkdirp(os.path.dirname(path))
            with open(path, "w") as file:
                tailback("completions", shell, output=file)

    def test_simulated_run(self):
        """a simulated load test prints its verdict"""
        tailback = which(self.prefix.bin.tailback)
        out = tailback("run", "--transport", "sim", "--machine", "small", "--no-out", output=str.split, error=str.split)
        check_outputs(["SIMULATED", "lat 8 B"], out)
