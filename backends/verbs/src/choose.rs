//! Which device, port and address to use on each rail: what the user named, or all that work, for the choice of local ends
//! that all backends have ([`tailback_bootstrap::local_ports`]); else what is wrong with each.

use std::collections::BTreeSet;
use std::rc::Rc;

use tailback_bootstrap::local_ports::{self, Chosen, LocalPort};
use tailback_host::near::{DeviceSelection, Seat};
use tailback_transport::{Bootstrap, Error, Result};

use crate::config::VerbsConfig;
use crate::ffi::{self, Context, Limits, LinkLayer, Patience, Port};
use crate::gid::{addresses, gid_text, network};
use crate::place::Place;

/// What to do where there is no device.
const NO_DEVICE: &str = "no RDMA device: load the adapter's driver (packages rdma-core and ibverbs-providers), or make a \
                         Soft-RoCE device: rdma link add rxe0 type rxe netdev INTERFACE";

/// An open device with a port and an address that can carry the data.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) context: Rc<Context>,
    pub(crate) limits: Limits,
    pub(crate) port: Port,
    pub(crate) gid_index: u8,
    pub(crate) gid: [u8; 16],
    /// "RoCE v2" and the like; empty on InfiniBand.
    pub(crate) gid_type: String,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    pub(crate) patience: Patience,
    /// Why this device, port and address.
    pub(crate) reason: String,
    /// The device and port of every rank.
    pub(crate) record: String,
    /// Which rank has another device than its twin on the first host.
    pub(crate) unlike: Option<String>,
}

impl Choice {
    /// Chooses for each rail among what the user named, or all active ports. Collective over the job.
    pub(crate) fn make(bootstrap: &mut dyn Bootstrap, config: &VerbsConfig) -> Result<Vec<Choice>> {
        let (selection, rails) = (&config.device, config.rails);
        selection.check(rails).map_err(Error::Setup)?;
        let seat = Seat::find(bootstrap)?;
        let (candidates, mut obstacles) = Self::candidates(config)?;
        if count(&candidates, |of| of.place().name()) < rails {
            let named = matches!(selection, DeviceSelection::Named(_)).then_some("--device names no others");
            let port = config.port.map(|_| "--port leaves others out");
            obstacles.extend([named, port].into_iter().flatten().map(str::to_owned));
        }
        let asked = match selection {
            DeviceSelection::Named(names) if names.len() == rails => Some(names),
            _ => None,
        };
        let candidates = match asked {
            Some(names) if rails > 1 => first_of_each(&candidates, names),
            _ => dealt(candidates, &seat, config),
        };
        let ends: Vec<Place> = candidates.iter().map(Choice::place).collect();
        let advice = "choose devices of one kind with --device";
        let chosen = local_ports::choose_rails(bootstrap, &ends, &obstacles, asked.is_some(), rails, advice)?;
        let choice = |chosen: Chosen| {
            let Chosen { index, reason, record, unlike, .. } = chosen;
            let reason = match asked {
                Some(_) => reason,
                None => format!("{selection}, place {} on its host; {reason}", seat.index),
            };
            Choice { reason, record, unlike, ..candidates[index].clone() }
        };
        Ok(chosen.into_iter().map(choice).collect())
    }

    /// As other ranks know it.
    fn place(&self) -> Place {
        let ethernet = self.port.link_layer == LinkLayer::Ethernet;
        Place { device: self.context.name.clone(), port: self.port.number, ethernet, gid: self.gid }
    }

    /// What devices have to have in common to be equals. Ranks on different ones talk to each other, so without a word of the
    /// user's they are of one network, as far as addresses tell.
    fn kind(&self, selection: &DeviceSelection) -> (bool, Option<u32>, Vec<u8>) {
        let ethernet = self.port.link_layer == LinkLayer::Ethernet;
        let network = match selection {
            DeviceSelection::Auto => network(&self.gid),
            DeviceSelection::RoundRobin | DeviceSelection::Named(_) => &[],
        };
        (ethernet, self.port.rate, network.to_vec())
    }

    /// Opens what the user named, or every device: the addresses that work, best first on each port; and what is wrong with the
    /// other ports.
    fn candidates(config: &VerbsConfig) -> Result<(Vec<Choice>, Vec<String>)> {
        let names = ffi::device_names()?;
        if names.is_empty() {
            return Err(Error::Setup(NO_DEVICE.into()));
        }
        if let [name, ..] = &config.device.missing(&names)[..] {
            return Err(Error::Setup(format!("there is no RDMA device {name}: there is {}", names.join(", "))));
        }
        let (mut usable, mut refused) = (Vec::new(), Vec::new());
        for name in names.iter().filter(|name| config.device.allows(name)) {
            Self::on_device(config, name, &mut usable, &mut refused)?;
        }
        if usable.is_empty() {
            return Err(Error::Setup(format!("no usable RDMA port: {}", refused.join("; "))));
        }
        Ok((usable, refused))
    }

    /// The usable ports of a device with their addresses, and what is wrong with the others.
    fn on_device(config: &VerbsConfig, name: &str, usable: &mut Vec<Choice>, refused: &mut Vec<String>) -> Result<()> {
        let context = Context::open(name)?;
        let limits = context.limits()?;
        if let Some(port) = config.port.filter(|&port| port == 0 || port > limits.ports) {
            refused.push(format!("{name} has no port {port}: it has {}", limits.ports));
            return Ok(());
        }
        for number in (1..=limits.ports).filter(|&number| config.port.is_none_or(|wanted| wanted == number)) {
            let mut port = context.port(number)?;
            if !port.is_active() {
                refused.push(format!("port {number} of {name} is {}", port.state_text()));
                continue;
            }
            if let Some(mtu) = config.path_mtu {
                if mtu > port.mtu_bytes() {
                    refused.push(format!("port {number} of {name} takes no packets above {}", port.mtu_bytes()));
                    continue;
                }
                port.limit_mtu(mtu);
            }
            match addresses(&context, &port, config.gid_index) {
                Err(reason) => refused.push(reason),
                Ok(entries) => usable.extend(entries.into_iter().map(|entry| Choice {
                    context: Rc::clone(&context),
                    limits: limits.clone(),
                    port,
                    gid_index: entry.index,
                    gid: entry.gid,
                    gid_type: entry.kind,
                    service_level: config.service_level,
                    traffic_class: config.traffic_class,
                    patience: Patience {
                        timeout: config.tries.timeout_code(),
                        retries: config.tries.retries_on(name),
                        not_ready_retries: config.tries.not_ready_retries,
                    },
                    reason: String::new(),
                    record: String::new(),
                    unlike: None,
                })),
            }
        }
        Ok(())
    }
}

/// The best of each device, in the order in which they are named.
fn first_of_each(candidates: &[Choice], names: &[String]) -> Vec<Choice> {
    let first = |name: &String| candidates.iter().find(|of| of.context.name == *name).cloned();
    names.iter().filter_map(first).collect()
}

/// Those for this rank first: it takes as many devices as have ports for its rails.
fn dealt(candidates: Vec<Choice>, seat: &Seat, config: &VerbsConfig) -> Vec<Choice> {
    let devices = count(&candidates, |of| of.context.name.clone()).max(1);
    let ports = count(&candidates, |of| of.place().name()).div_ceil(devices).max(1);
    let near = |of: &Choice| config.device == DeviceSelection::RoundRobin || seat.is_near(&of.context.folder());
    let each = config.rails.div_ceil(ports);
    seat.deal(candidates, each, |of| of.context.name.clone(), |of| of.kind(&config.device), near)
}

/// How many different names they have.
fn count(candidates: &[Choice], name: impl Fn(&Choice) -> String) -> usize {
    candidates.iter().map(name).collect::<BTreeSet<_>>().len()
}

/// The devices and ports of this machine, a line each; or what is missing.
pub(crate) fn list() -> std::result::Result<Vec<String>, String> {
    let names = ffi::device_names().map_err(|error| error.to_string())?;
    if names.is_empty() {
        return Err(NO_DEVICE.into());
    }
    let mut lines = Vec::new();
    for name in names {
        match ports(&name) {
            Ok(of_device) => lines.extend(of_device),
            Err(error) => lines.push(format!("{name}: {error}")),
        }
    }
    Ok(lines)
}

fn ports(name: &str) -> Result<Vec<String>> {
    let context = Context::open(name)?;
    let limits = context.limits()?;
    (1..=limits.ports)
        .map(|number| {
            let port = context.port(number)?;
            let layer = match port.link_layer {
                LinkLayer::InfiniBand => "InfiniBand",
                LinkLayer::Ethernet => "RoCE",
            };
            let mut line = format!("{name} port {number}: {}, {layer}", port.state_text());
            if let Some(rate) = rate_text(&port) {
                line += &format!(", {rate}");
            }
            line += &format!(", MTU {}, firmware {}", port.mtu_bytes(), limits.firmware);
            if let Some(entry) = addresses(&context, &port, None).ok().and_then(|all| all.into_iter().next()) {
                line += &format!(", GID {} {}", entry.index, gid_text(&entry.gid));
            }
            Ok(line)
        })
        .collect()
}

/// The link's rate.
pub(crate) fn rate_text(port: &Port) -> Option<String> {
    port.rate.map(|tenths| format!("{}.{} Gbit/s", tenths / 10, tenths % 10))
}
