//! Opening the transport: listen on every rail, tell the others where, choose how to wait.

use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

use tailback_engine::matching::{Core, Rails};
use tailback_host::WaitMode;
use tailback_transport::{Bootstrap, Error, Rank, Result};

use crate::facts;
use crate::wire::{LocalEnd, TcpWire, set_traffic_class};
use tailback_bootstrap::Secret;
use tailback_bootstrap::address::{self, Choice, Selection};

/// What a rank with a bootstrap like ours keeps open for it.
const BOOTSTRAP_FILES: usize = 128;
/// Connections that may wait to be accepted; the system may lower it.
const BACKLOG: i32 = 4096;

/// How to [`open`] a transport. Every rank passes its own. Not printable, for it holds the secret.
#[derive(Clone)]
pub struct TcpConfig {
    /// The interfaces or local addresses that carry the data, one per rail. With none: loopback when all ranks share a host,
    /// else the first interfaces in a network of every other host.
    pub addresses: Selection,
    /// How many rails: interfaces that a rank uses at once, with a connection to a peer on each.
    pub rails: usize,
    /// How to wait. None: block when the ranks of this machine outnumber its cores, else spin.
    pub wait: Option<WaitMode>,
    /// The traffic class byte of every packet that this rank sends; 0 leaves it to the system.
    pub traffic_class: u8,
    /// How this rank's connections react to congestion; `None` leaves it to the system.
    pub congestion_control: Option<String>,
    /// What every rank of the job knows and nobody else.
    pub secret: Secret,
}

/// Plain sockets between the ranks of a job, one connection per pair that talks and rail.
pub type TcpTransport = Core<TcpWire>;

/// Opens the transport. Collective over the job.
///
/// # Errors
/// If an interface or an address is missing, or a rank is lost.
pub fn open(bootstrap: &mut dyn Bootstrap, config: &TcpConfig) -> Result<TcpTransport> {
    let rails = Rails::checked(config.rails)?;
    // Connections are made by need, to whomever a kernel has to do with; that can be everybody.
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let connected = format!("rank {rank}, connected to {size} ranks,");
    tailback_bootstrap::limits::require_files(&connected, size * config.rails + BOOTSTRAP_FILES)?;
    let choices = address::choose_rails(bootstrap, &config.addresses, config.rails)?;
    let report = |source| Error::Io { operation: "listen", peer: None, source };
    // What they accept inherits the class.
    let listen = |choice: &Choice| listen(choice.address, config.traffic_class);
    let listeners = choices.iter().map(listen).collect::<std::io::Result<Vec<_>>>().map_err(report)?;
    let mut local = Vec::new();
    for listener in &listeners {
        let address = listener.local_addr().map_err(report)?.as_socket();
        local.push(address.ok_or_else(|| Error::Setup("the listener has no address".into()))?);
    }
    let text: Vec<String> = local.iter().map(SocketAddr::to_string).collect();
    let told = bootstrap.allgather(text.join(" ").as_bytes())?;
    let parse = |(rank, text): (usize, &Vec<u8>)| parse(rank, text, config.rails);
    let addresses = told.iter().enumerate().map(parse).collect::<Result<Vec<_>>>()?;
    let (wait, reason) = WaitMode::choose(config.wait, bootstrap)?;
    let mut description = facts::describe(&choices, &listeners[0], wait, &reason);
    if config.traffic_class != 0 {
        description.details.insert("traffic_class".into(), config.traffic_class.to_string());
    }
    if let Some(name) = &config.congestion_control {
        description.details.remove("default_congestion_control");
        description.details.insert("congestion_control".into(), name.clone());
    }
    // Of two interfaces in one network, routes know only the first. Addresses are the user's own affair.
    let Selection { interfaces, addresses: own } = &config.addresses;
    let binds = !interfaces.is_empty() || (config.rails > 1 && own.is_empty());
    let end = |choice: &Choice| {
        let device = binds.then(|| choice.interface.clone()).filter(|name| {
            let may = may_bind_to(name);
            let told = may.as_ref().map_or_else(|error| format!("no: {error}"), |()| "yes".into());
            description.details.insert("bound_to_interface".into(), told);
            may.is_ok()
        });
        LocalEnd {
            address: choice.address,
            interface: choice.interface.clone(),
            traffic_class: config.traffic_class,
            congestion_control: config.congestion_control.clone(),
            device,
        }
    };
    let ends = listeners.into_iter().zip(choices.iter().map(end)).collect();
    let wire = TcpWire::new(ends, &addresses, config.secret.clone(), wait)?;
    Ok(Core::new(rank, size, rails, wire, description))
}

fn listen(address: IpAddr, traffic_class: u8) -> std::io::Result<Socket> {
    let address = SocketAddr::new(address, 0);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    set_traffic_class(&socket, address, traffic_class)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Whether a socket of this process may be bound to an interface: old systems and some containers want a privilege for it.
fn may_bind_to(interface: &str) -> std::io::Result<()> {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?.bind_device(Some(interface.as_bytes()))
}

/// Whether this system has a congestion control of this name; else those that it has.
pub fn has_congestion_control(name: &str) -> std::result::Result<(), String> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
    let set = socket.and_then(|socket| Ok(rustix::net::sockopt::set_tcp_congestion(&socket, name)?));
    set.map_err(|error| {
        let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        format!("congestion control '{name}': {error}; here there are: {}", known.unwrap_or_default().trim())
    })
}

/// Where a rank listens on each rail, as told at start-up.
fn parse(rank: usize, text: &[u8], rails: usize) -> Result<Vec<SocketAddr>> {
    let text = String::from_utf8_lossy(text);
    let addresses: std::result::Result<Vec<SocketAddr>, _> = text.split(' ').map(str::parse).collect();
    addresses.ok().filter(|addresses| addresses.len() == rails).ok_or_else(|| Error::Protocol {
        operation: "exchange of addresses",
        peer: Some(Rank::from(rank)),
        detail: format!("\"{text}\" is no address per rail"),
    })
}
