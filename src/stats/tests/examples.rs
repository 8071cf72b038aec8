//! The example does what it says.

#[path = "../examples/claim.rs"]
mod claim;

#[test]
fn a_claim_from_samples() {
    claim::main();
}
