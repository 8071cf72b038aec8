//! Opens what canaries and congestors use: one network for both, or one for each.

use tailback_tcp::Secret;
use tailback_transport::{Bootstrap, Error, Result, Transport};

use super::open::open_raw;
use super::{Network, Pair, PairVisitor, Settings, Variant, Visitor};

/// Opens the networks of a variant that are all raw.
pub(super) fn open_raw_pair<B: Bootstrap, V: PairVisitor>(
    variant: Variant,
    settings: &Settings,
    bootstrap: &mut B,
    secret: &Secret,
    visitor: V,
) -> Result<V::Output> {
    match variant.congestors {
        None => open_raw(variant.network, settings, bootstrap, secret, Alone(visitor)),
        Some(congestors) => {
            open_raw(variant.network, settings, bootstrap, secret, ThenRaw { congestors, settings, secret, visitor })?
        }
    }
}

/// One network for both.
pub(super) struct One<'a, T>(pub &'a mut T);

impl<T: Transport> Pair for One<'_, T> {
    type Canary = T;
    type Congestor = T;

    fn canary(&mut self) -> &mut T {
        self.0
    }

    fn congestor(&mut self) -> &mut T {
        self.0
    }
}

/// A network for each, the canaries' first.
pub(super) struct Two<'a, T, K>(pub &'a mut T, pub &'a mut K);

impl<T: Transport, K: Transport> Pair for Two<'_, T, K> {
    type Canary = T;
    type Congestor = K;

    fn canary(&mut self) -> &mut T {
        self.0
    }

    fn congestor(&mut self) -> &mut K {
        self.1
    }
}

/// With the only network, does what was to be done with a pair.
#[derive(Clone)]
pub(super) struct Alone<V>(pub V);

impl<V: PairVisitor> Visitor for Alone<V> {
    type Output = V::Output;

    fn visit<B: Bootstrap, T: Transport>(self, bootstrap: &mut B, transport: &mut T) -> V::Output {
        self.0.visit(bootstrap, &mut One(transport))
    }

    fn error(output: &V::Output) -> Option<&Error> {
        V::error(output)
    }
}

/// With the congestors' network, does what was to be done with a pair, whose canaries' is open.
pub(super) struct Under<'a, T, V> {
    pub canary: &'a mut T,
    pub visitor: V,
}

impl<T: Transport, V: PairVisitor> Visitor for Under<'_, T, V> {
    type Output = V::Output;

    fn visit<B: Bootstrap, K: Transport>(self, bootstrap: &mut B, transport: &mut K) -> V::Output {
        self.visitor.visit(bootstrap, &mut Two(self.canary, transport))
    }
}

/// With the canaries' network, opens the congestors' raw one too.
pub(super) struct ThenRaw<'a, V> {
    pub congestors: Network,
    pub settings: &'a Settings,
    pub secret: &'a Secret,
    pub visitor: V,
}

impl<V: PairVisitor> Visitor for ThenRaw<'_, V> {
    type Output = Result<V::Output>;

    fn visit<B: Bootstrap, T: Transport>(self, bootstrap: &mut B, transport: &mut T) -> Self::Output {
        let under = Under { canary: transport, visitor: self.visitor };
        open_raw(self.congestors, self.settings, bootstrap, self.secret, under)
    }
}
