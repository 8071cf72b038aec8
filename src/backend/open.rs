//! Opens raw networks. A further raw backend is a further line here.

use tailback_tcp::Secret;
use tailback_transport::{Bootstrap, Error, Result};

use super::{Backend, Network, Settings, Visitor, libfabric, tcp, verbs};

/// Opens a raw network between ranks that came together somehow and share `secret`, and hands it to `visitor`.
pub(super) fn open_raw<B: Bootstrap, V: Visitor>(
    network: Network,
    settings: &Settings,
    bootstrap: &mut B,
    secret: &Secret,
    visitor: V,
) -> Result<V::Output> {
    match network.backend {
        Backend::Tcp => {
            let mut transport = network.over(tcp::open(settings, bootstrap, secret)?);
            Ok(visitor.visit(bootstrap, &mut transport))
        }
        Backend::Libfabric => libfabric::open(network, settings, bootstrap, visitor),
        Backend::Verbs => verbs::open(network, settings, bootstrap, secret, visitor),
        Backend::Sim => Err(Error::Setup("a simulated network has ranks of its own".into())),
        Backend::Mpi => Err(Error::Setup("MPI is no raw network".into())),
    }
}
