//! Help texts, as users see them: a change is a change of the product and is looked at.

use crate::common::{run, succeed};

#[test]
fn help_texts() {
    for command in [
        "",
        "run",
        "app",
        "network",
        "congest",
        "calibrate",
        "show",
        "compare",
        "report",
        "import",
        "maxrate",
        "contention",
        "beff",
        "hpcc",
        "launch",
    ]
    .into_iter()
    .chain(["lab", "lab run", "simulate", "machine", "machine check", "info", "schema", "secret"])
    {
        let name = if command.is_empty() { "tailback".to_owned() } else { command.replace(' ', "_") };
        insta::with_settings!({ prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("help__{name}"), succeed(&format!("{command} --help")).stdout);
        });
    }
}

#[test]
fn without_a_command_the_help_is_shown() {
    let outcome = run("");
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(2), ""));
    assert!(outcome.stderr.contains("Usage: tailback <COMMAND>"), "{}", outcome.stderr);
}

#[test]
fn every_kernel_is_in_the_help_and_in_info() {
    let (help, info) = (succeed("run --help").stdout, succeed("info").stdout);
    for kernel in tailback::kernel::Canary::kernels().map(|kernel| kernel.info().key) {
        assert!(help.contains(kernel) && info.contains(kernel), "{kernel}");
    }
    for kernel in tailback::kernel::Congestor::ALL.iter().map(|kernel| kernel.info().key) {
        assert!(help.contains(kernel) && info.contains(kernel), "{kernel}");
    }
    assert!(info.contains("no launcher"), "{info}");
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(succeed("--version").stdout, format!("tailback {}\n", env!("CARGO_PKG_VERSION")));
}
