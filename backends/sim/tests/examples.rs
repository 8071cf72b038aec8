//! The example does what it says.

#[path = "../examples/network.rs"]
mod network;

#[test]
fn a_simulated_network() {
    network::main();
}
