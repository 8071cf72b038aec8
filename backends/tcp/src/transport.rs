//! Opening the transport: listen, tell the others where, choose how to wait.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use socket2::{Domain, Protocol, Socket, Type};

use tailback_transport::matching::Core;
use tailback_transport::{
    Bootstrap, Capabilities, Clock, Description, EngineGroup, Error, Rank, RawTransport, Result, WaitMode,
};

use crate::secret::Secret;
use crate::wire::{LocalEnd, TcpWire, set_traffic_class};
use crate::{address, facts, files};

/// What a rank with a bootstrap like ours keeps open for it.
const BOOTSTRAP_FILES: usize = 128;
/// Connections that may wait to be accepted; the system may lower it.
const BACKLOG: i32 = 4096;

/// How to open a [`TcpTransport`]. Every rank passes its own. Not printable, for it holds the secret.
#[derive(Clone)]
pub struct TcpConfig {
    /// The interface that carries the data. None: see [`TcpConfig::address`].
    pub interface: Option<String>,
    /// The local address that carries the data. With neither this nor an interface: loopback when all ranks share a
    /// host, else the first interface in a network of every other host.
    pub address: Option<IpAddr>,
    /// How to wait. None: block when the ranks of this machine outnumber its cores, else spin.
    pub wait: Option<WaitMode>,
    /// The traffic class byte of every packet that this rank sends; 0 leaves it to the system.
    pub traffic_class: u8,
    /// How this rank's connections react to congestion; `None` leaves it to the system.
    pub congestion_control: Option<String>,
    /// What every rank of the job knows and nobody else.
    pub secret: Secret,
}

/// A group of ranks that talk over [`TcpTransport`]. Dropping it frees its segment.
pub type TcpGroup = EngineGroup<Core<TcpWire>>;

/// Plain sockets between the ranks of a job, one connection per pair that talks.
#[derive(Debug)]
pub struct TcpTransport {
    engine: Rc<RefCell<Core<TcpWire>>>,
    clock: Clock,
    description: Description,
    local: SocketAddr,
}

impl TcpTransport {
    /// Opens the transport. Collective over the job.
    pub fn open(bootstrap: &mut impl Bootstrap, config: &TcpConfig) -> Result<TcpTransport> {
        // Connections are made by need, to whomever a kernel has to do with; that can be everybody.
        let (rank, size) = (bootstrap.rank(), bootstrap.size());
        files::make_room(&format!("rank {rank}, connected to {size} ranks,"), size + BOOTSTRAP_FILES)?;
        let choice = address::choose(bootstrap, config.interface.as_deref(), config.address)?;
        let report = |source| Error::Io { operation: "listen", peer: None, source };
        // What it accepts inherits the class.
        let listener = listen(choice.address, config.traffic_class).map_err(report)?;
        let local = listener.local_addr().map_err(report)?.as_socket();
        let local = local.ok_or_else(|| Error::Setup("the listener has no address".into()))?;
        let told = bootstrap.allgather(local.to_string().as_bytes())?;
        let addresses = told.iter().enumerate().map(|(rank, text)| parse(rank, text)).collect::<Result<Vec<_>>>()?;
        let (wait, reason) = WaitMode::choose(config.wait, bootstrap)?;
        let mut description = facts::describe(&choice, &listener, wait, &reason);
        if config.traffic_class != 0 {
            description.details.insert("traffic_class".into(), config.traffic_class.to_string());
        }
        if let Some(name) = &config.congestion_control {
            description.details.insert("tcp_congestion_control".into(), name.clone());
        }
        let device = config.interface.clone().filter(|name| {
            let may = may_bind_to(name);
            let told = may.as_ref().map_or_else(|error| format!("no: {error}"), |()| "yes".into());
            description.details.insert("bound_to_interface".into(), told);
            may.is_ok()
        });
        let local_end = LocalEnd {
            address: choice.address,
            traffic_class: config.traffic_class,
            congestion_control: config.congestion_control.clone(),
            device,
        };
        let wire = TcpWire::new(listener, local_end, &addresses, config.secret.clone(), wait)?;
        let engine = Core::new(bootstrap.rank(), bootstrap.size(), wire);
        Ok(TcpTransport { engine: Rc::new(RefCell::new(engine)), clock: Clock::start(), description, local })
    }

    /// Bytes of messages from `peer` that wait here for receives.
    #[must_use]
    pub fn held(&self, peer: Rank) -> usize {
        self.engine.borrow().ledger().held(peer.index())
    }

    /// Where this rank listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

impl RawTransport for TcpTransport {
    type Group = TcpGroup;

    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn describe(&self) -> Description {
        self.description.clone()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<TcpGroup> {
        TcpGroup::make(&self.engine, &self.clock, members, segment)
    }
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

/// Where a rank listens, as told at start-up.
fn parse(rank: usize, text: &[u8]) -> Result<SocketAddr> {
    let text = String::from_utf8_lossy(text);
    text.parse().map_err(|_| Error::Protocol {
        operation: "exchange of addresses",
        peer: Some(Rank::from(rank)),
        detail: format!("\"{text}\" is no address"),
    })
}
