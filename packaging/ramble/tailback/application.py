# Tailback for Ramble: an application of a repository of one's own. In a clone of Tailback:
#
#   ramble repo create ~/tailback-ramble
#   cp -r packaging/ramble/tailback ~/tailback-ramble/applications/
#   ramble repo add ~/tailback-ramble
#
# Workloads: `load` measures canaries idle and under load, `network` without load, `simulated` needs one process and no network.

from ramble.appkit import *


class Tailback(ExecutableApplication):
    """Measures what congestion does to HPC and data-centre networks: canary
    kernels idle and under load."""

    name = "tailback"

    tags("synthetic-benchmarks", "network", "congestion")

    software_spec("tailback", pkg_spec="tailback@main+mpi", when=["package_manager_family=spack"])
    required_package("tailback", when=["package_manager_family=spack"])

    executable("load", "tailback run --out {result} --quiet {options}", use_mpi=True)
    executable("network", "tailback network --out {result} --quiet {options}", use_mpi=True)
    executable("simulated", "tailback run --transport sim --machine {machine} --out {result} --quiet {options}", use_mpi=False)

    workload("load", executables=["load"])
    workload("network", executables=["network"])
    workload("simulated", executables=["simulated"])

    workloads = ["load", "network", "simulated"]
    workload_variable("result", default="{experiment_run_dir}/result.json", description="Result file", workloads=workloads)
    workload_variable("options", default="", description="Further options, e.g. --placements 10", workloads=workloads)
    workload_variable("machine", default="small", description="Machine to simulate", workloads=["simulated"])

    log = "{experiment_run_dir}/{experiment_name}.out"

    figure_of_merit("Verdict", log_file=log, fom_regex=r"^(?P<verdict>(NO|MILD|STRONG|SEVERE) CONGESTION|CANNOT SAY)", group_name="verdict")

    # A row of the summary: test, idle, loaded, added, impact.
    row = (
        r"^(?P<test>[a-z][a-z0-9-]* [0-9.]+ (B|KiB|MiB)) +(?P<idle>[0-9.]+ [A-Za-z/]+) +(?P<loaded>[0-9.]+ [A-Za-z/]+) .* "
        r"(?P<impact>[0-9.e+]+)x \[(?P<low>[0-9.e+]+), (?P<high>[0-9.e+]+)\]"
    )
    figure_of_merit_context("test", regex=row, output_format="{test}")
    figure_of_merit("Idle", log_file=log, fom_regex=row, group_name="idle", contexts=["test"])
    figure_of_merit("Loaded", log_file=log, fom_regex=row, group_name="loaded", contexts=["test"])
    figure_of_merit("Impact", log_file=log, fom_regex=row, group_name="impact", units="x", contexts=["test"])
    figure_of_merit("Impact, low end of 95%", log_file=log, fom_regex=row, group_name="low", units="x", contexts=["test"])
    figure_of_merit("Impact, high end of 95%", log_file=log, fom_regex=row, group_name="high", units="x", contexts=["test"])

    success_criteria("measured", mode="string", match=r".*(CONGESTION|CANNOT SAY|Time-weighted|p90).*", file=log)
