//! Reads types and constants from the system's `infiniband/verbs.h`. It links nothing: functions are found at run time.

use std::path::PathBuf;

/// What the crate's users name; bindgen adds what these need.
const TYPES: &str = "ibv_(context|device|device_attr|port_attr|gid|pd|mr|cq|comp_channel|ah|ah_attr|qp|qp_init_attr|\
    qp_attr|send_wr|recv_wr|sge|wc|grh|async_event|access_flags|send_flags|qp_attr_mask|qp_state|qp_type|wr_opcode|\
    wc_status|wc_opcode|mtu|port_state|event_type)|_compat_ibv_port_attr";

fn main() {
    println!("cargo::rerun-if-changed=wrapper.h");
    println!("cargo::rerun-if-changed=build.rs");
    let bindings = bindgen::Builder::default()
        .header("wrapper.h")
        .allowlist_type(TYPES)
        .allowlist_var("IBV_LINK_LAYER_.*")
        .allowlist_recursively(true)
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(false)
        .generate_comments(false)
        .generate();
    let bindings = match bindings {
        Ok(bindings) => bindings,
        Err(error) => panic!("cannot read infiniband/verbs.h: install libibverbs-dev and libclang-dev ({error})"),
    };
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindings.write_to_file(out.join("bindings.rs")).expect("OUT_DIR is writable");
}
