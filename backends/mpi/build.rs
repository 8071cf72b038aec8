//! Compiles `src/shim.c` with the MPI compiler that `mpi-sys` picks (`MPICC`, or `mpicc` on the path), so that both see
//! the same header.

fn main() {
    println!("cargo:rerun-if-changed=src/shim.c");
    println!("cargo:rerun-if-env-changed=MPICC");
    let library = match build_probe_mpi::probe() {
        Ok(library) => library,
        Err(reasons) => {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            panic!("no MPI found: set MPICC to the compiler wrapper of the MPI to use ({})", reasons.join("; "));
        }
    };
    compiler(&library).file("src/shim.c").compile("tailback_mpi_shim");
    if std::env::var_os("CARGO_FEATURE_REFERENCE").is_some() {
        let loops = "../../benches/reference/loops.c";
        println!("cargo:rerun-if-changed={loops}");
        compiler(&library).file(loops).opt_level(3).debug(false).compile("tailback_mpi_reference");
    }
}

fn compiler(library: &build_probe_mpi::Library) -> cc::Build {
    let mut build = cc::Build::new();
    match &library.mpicc {
        Some(wrapper) => build.compiler(wrapper),
        None => build.includes(&library.include_paths),
    };
    build
}
