//! What the result file keeps about the network under this transport.

use std::collections::BTreeMap;
use std::fs;

use socket2::Socket;

use tailback_host::WaitMode;
use tailback_transport::Description;

use tailback_bootstrap::address::Choice;

/// The description of a transport with these rails that listens on `listener`. What is said of the first rail has no number.
pub fn describe(choices: &[Choice], listener: &Socket, wait: WaitMode, wait_reason: &str) -> Description {
    let uname = rustix::system::uname();
    let library = format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
    let mut details =
        BTreeMap::from([("wait".to_owned(), wait.to_string()), ("wait_reason".to_owned(), wait_reason.to_owned())]);
    for (rail, choice) in choices.iter().enumerate() {
        let mut tell = |name: &str, value: String| details.insert(Description::rail_key(rail, name), value);
        tell("address", choice.address.to_string());
        tell("interface", choice.interface.clone());
        tell("address_reason", choice.reason.clone());
        tell("interfaces", choice.record.clone());
        if let Some(speed) = link_speed(&choice.interface) {
            tell("link_speed_mbit_per_s", speed.to_string());
        }
    }
    if let Ok(name) = listener.tcp_congestion() {
        let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
        // Of connections the route decides, where it names one; then this is not what they have.
        details.insert("default_congestion_control".to_owned(), name);
    }
    Description { backend: "tcp".into(), library, details }
}

/// What the interface's driver says; virtual interfaces often say nothing.
fn link_speed(interface: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    text.trim().parse::<u64>().ok().filter(|&speed| speed > 0)
}
