//! The example does what it says.

#[path = "../examples/kernel.rs"]
mod kernel;

#[test]
fn a_kernel_of_ones_own() {
    kernel::main();
}
