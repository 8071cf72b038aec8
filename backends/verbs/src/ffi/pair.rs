//! Queue pairs: reliable ones between two ranks, and the one for datagrams. Invariants as in `ffi.rs`.

use std::ptr;
use std::rc::Rc;

use tailback_transport::{Rank, Result};

use super::{Completions, Domain, Piece, check, failed_errno, loaded, sys};

/// A peer without a buffer is asked again after 0.96 ms (code 13). Credits make that a mistake of ours.
const NOT_READY_TIMER: u8 = 13;

/// What the device does when a peer does not answer, in its own codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) timeout: u8,
    pub(crate) retries: u8,
    pub(crate) not_ready_retries: u8,
}

/// How to get to a peer's port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) port: u8,
    /// This rank's entry in the port's table of addresses.
    pub(crate) gid_index: u8,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    pub(crate) lid: u16,
    /// The peer's address; none inside an InfiniBand subnet.
    pub(crate) gid: Option<[u8; 16]>,
}

impl Path {
    fn attributes(&self) -> sys::ibv_ah_attr {
        let mut attributes =
            sys::ibv_ah_attr { dlid: self.lid, sl: self.service_level, port_num: self.port, ..Default::default() };
        if let Some(gid) = self.gid {
            attributes.is_global = 1;
            attributes.grh.dgid = sys::ibv_gid { raw: gid };
            attributes.grh.sgid_index = self.gid_index;
            attributes.grh.hop_limit = 64;
            attributes.grh.traffic_class = self.traffic_class;
        }
        attributes
    }
}

/// The other end of a reliable pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) path: Path,
    pub(crate) number: u32,
    /// The first packet's number in each direction.
    pub(crate) first_in: u32,
    pub(crate) first_out: u32,
    /// `ibv_mtu`, the smaller of the two ports'.
    pub(crate) mtu: u32,
    /// Reads under way in each direction.
    pub(crate) reads_out: u8,
    pub(crate) reads_in: u8,
    pub(crate) patience: Patience,
}

/// How much may be posted at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depths {
    pub(crate) sends: u32,
    pub(crate) receives: u32,
    /// Wanted; see [`Pair::inline`].
    pub(crate) inline: u32,
}

/// Any queue pair.
#[derive(Debug)]
struct Queue {
    raw: *mut sys::ibv_qp,
    inline: usize,
    _domain: Rc<Domain>,
    _completions: Rc<Completions>,
}

impl Queue {
    fn new(
        domain: &Rc<Domain>,
        completions: &Rc<Completions>,
        kind: sys::ibv_qp_type,
        depths: Depths,
    ) -> Result<Queue> {
        // Devices differ in how much they take inline and refuse what is too much.
        let mut inline = depths.inline;
        loop {
            let mut attributes = sys::ibv_qp_init_attr { qp_type: kind, ..Default::default() };
            attributes.send_cq = completions.raw;
            attributes.recv_cq = completions.raw;
            attributes.cap.max_send_wr = depths.sends;
            attributes.cap.max_recv_wr = depths.receives;
            attributes.cap.max_send_sge = 2;
            attributes.cap.max_recv_sge = 1;
            attributes.cap.max_inline_data = inline;
            // SAFETY: *Open*; the callee reads and updates the struct.
            let raw = unsafe { (loaded().ibv_create_qp)(domain.raw, &raw mut attributes) };
            if !raw.is_null() {
                let inline = attributes.cap.max_inline_data.min(inline) as usize;
                return Ok(Queue { raw, inline, _domain: Rc::clone(domain), _completions: Rc::clone(completions) });
            }
            if inline == 0 {
                return Err(failed_errno("ibv_create_qp", None));
            }
            inline = if inline > 32 { inline / 2 } else { 0 };
        }
    }

    fn number(&self) -> u32 {
        // SAFETY: *Open*.
        unsafe { (*self.raw).qp_num }
    }

    fn modify(&self, peer: Option<Rank>, mut attributes: sys::ibv_qp_attr, mask: u32) -> Result<()> {
        // SAFETY: *Open*; the mask names the fields that are set.
        check("ibv_modify_qp", peer, unsafe { (loaded().ibv_modify_qp)(self.raw, &raw mut attributes, mask as i32) })
    }

    fn receive(&self, peer: Option<Rank>, id: u64, into: Piece) -> Result<()> {
        let mut entry = sys::ibv_sge { addr: into.address, length: into.len, lkey: into.key };
        let mut request = sys::ibv_recv_wr { wr_id: id, next: ptr::null_mut(), sg_list: &raw mut entry, num_sge: 1 };
        let mut bad = ptr::null_mut();
        // SAFETY: *Open*, *Registered*, *In bounds*; the callee keeps no pointer to the request.
        check("ibv_post_recv", peer, unsafe { sys::ibv_post_recv(self.raw, &raw mut request, &raw mut bad) })
    }

    #[inline(always)]
    fn post(&self, peer: Option<Rank>, pieces: &mut [sys::ibv_sge], mut request: sys::ibv_send_wr) -> Result<()> {
        request.sg_list = pieces.as_mut_ptr();
        request.num_sge = pieces.len() as i32;
        let mut bad = ptr::null_mut();
        // SAFETY: *Open*, *Registered*, *In bounds*; inline bytes are copied by the call; it keeps no pointer to the
        // request.
        check("ibv_post_send", peer, unsafe { sys::ibv_post_send(self.raw, &raw mut request, &raw mut bad) })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: *Open*; no event about the pair is left unacknowledged, which the call would wait for.
        unsafe { (loaded().ibv_destroy_qp)(self.raw) };
    }
}

#[inline]
fn entry(piece: Piece) -> sys::ibv_sge {
    sys::ibv_sge { addr: piece.address, length: piece.len, lkey: piece.key }
}

#[inline(always)]
fn request(id: u64, opcode: sys::ibv_wr_opcode, signalled: bool, inline: bool) -> sys::ibv_send_wr {
    let mut flags = 0;
    if signalled {
        flags |= sys::IBV_SEND_SIGNALED;
    }
    if inline {
        flags |= sys::IBV_SEND_INLINE;
    }
    sys::ibv_send_wr { wr_id: id, opcode, send_flags: flags, ..Default::default() }
}

/// A reliable connection with one peer.
#[derive(Debug)]
pub(crate) struct Pair {
    queue: Queue,
    rank: Rank,
}

impl Pair {
    /// A pair that can be given buffers to receive into.
    pub(crate) fn new(
        domain: &Rc<Domain>,
        completions: &Rc<Completions>,
        depths: Depths,
        port: u8,
        rank: Rank,
    ) -> Result<Pair> {
        let queue = Queue::new(domain, completions, sys::IBV_QPT_RC, depths)?;
        let access = sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ;
        let attributes = sys::ibv_qp_attr {
            qp_state: sys::IBV_QPS_INIT,
            port_num: port,
            qp_access_flags: access,
            ..Default::default()
        };
        let mask = sys::IBV_QP_STATE | sys::IBV_QP_PKEY_INDEX | sys::IBV_QP_PORT | sys::IBV_QP_ACCESS_FLAGS;
        queue.modify(Some(rank), attributes, mask)?;
        Ok(Pair { queue, rank })
    }

    /// What the peer calls it.
    pub(crate) fn number(&self) -> u32 {
        self.queue.number()
    }

    /// How many bytes a request may carry in itself.
    pub(crate) fn inline(&self) -> usize {
        self.queue.inline
    }

    /// Connects it: from now on it receives and sends.
    pub(crate) fn connect(&self, peer: &Peer) -> Result<()> {
        let attributes = sys::ibv_qp_attr {
            qp_state: sys::IBV_QPS_RTR,
            path_mtu: peer.mtu,
            dest_qp_num: peer.number,
            rq_psn: peer.first_in,
            max_dest_rd_atomic: peer.reads_in,
            min_rnr_timer: NOT_READY_TIMER,
            ah_attr: peer.path.attributes(),
            ..Default::default()
        };
        let mask = sys::IBV_QP_STATE
            | sys::IBV_QP_AV
            | sys::IBV_QP_PATH_MTU
            | sys::IBV_QP_DEST_QPN
            | sys::IBV_QP_RQ_PSN
            | sys::IBV_QP_MAX_DEST_RD_ATOMIC
            | sys::IBV_QP_MIN_RNR_TIMER;
        self.queue.modify(Some(self.rank), attributes, mask)?;
        let attributes = sys::ibv_qp_attr {
            qp_state: sys::IBV_QPS_RTS,
            timeout: peer.patience.timeout,
            retry_cnt: peer.patience.retries,
            rnr_retry: peer.patience.not_ready_retries,
            sq_psn: peer.first_out,
            max_rd_atomic: peer.reads_out,
            ..Default::default()
        };
        let mask = sys::IBV_QP_STATE
            | sys::IBV_QP_TIMEOUT
            | sys::IBV_QP_RETRY_CNT
            | sys::IBV_QP_RNR_RETRY
            | sys::IBV_QP_SQ_PSN
            | sys::IBV_QP_MAX_QP_RD_ATOMIC;
        self.queue.modify(Some(self.rank), attributes, mask)
    }

    /// Gives it a buffer to receive into.
    pub(crate) fn receive(&self, id: u64, into: Piece) -> Result<()> {
        self.queue.receive(Some(self.rank), id, into)
    }

    /// Sends up to two pieces as one message, with a number that its completion shows.
    pub(crate) fn send(
        &self,
        id: u64,
        signalled: bool,
        number: u32,
        first: Option<Piece>,
        second: Option<Piece>,
    ) -> Result<()> {
        let mut pieces = [first.map(entry).unwrap_or_default(), second.map(entry).unwrap_or_default()];
        let count = usize::from(first.is_some()) + usize::from(second.is_some());
        self.queue.post(Some(self.rank), &mut pieces[..count], numbered(id, signalled, false, number))
    }

    /// Sends bytes of the caller's and a piece as one message, which the request carries in itself: both may be used
    /// again at once.
    #[inline]
    pub(crate) fn send_inline(
        &self,
        id: u64,
        signalled: bool,
        number: u32,
        head: &[u8],
        body: Option<Piece>,
    ) -> Result<()> {
        let head = sys::ibv_sge { addr: head.as_ptr() as u64, length: head.len() as u32, lkey: 0 };
        let mut pieces = [head, body.map(entry).unwrap_or_default()];
        let count = 1 + usize::from(body.is_some());
        self.queue.post(Some(self.rank), &mut pieces[..count], numbered(id, signalled, true, number))
    }

    /// Writes to the peer's memory; what is short travels inside the request.
    #[inline]
    pub(crate) fn write(&self, id: u64, signalled: bool, from: Piece, to: u64, key: u32) -> Result<()> {
        let inline = from.len as usize <= self.queue.inline;
        let mut request = request(id, sys::IBV_WR_RDMA_WRITE, signalled, inline);
        request.wr.rdma = remote(to, key);
        self.queue.post(Some(self.rank), &mut [entry(from)], request)
    }

    /// Reads from the peer's memory.
    #[inline]
    pub(crate) fn read(&self, id: u64, signalled: bool, into: Piece, from: u64, key: u32) -> Result<()> {
        let mut request = request(id, sys::IBV_WR_RDMA_READ, signalled, false);
        request.wr.rdma = remote(from, key);
        self.queue.post(Some(self.rank), &mut [entry(into)], request)
    }
}

/// A send that shows a number to its receiver.
#[inline(always)]
fn numbered(id: u64, signalled: bool, inline: bool, number: u32) -> sys::ibv_send_wr {
    let mut request = request(id, sys::IBV_WR_SEND_WITH_IMM, signalled, inline);
    request.__bindgen_anon_1.imm_data = number.to_be();
    request
}

#[inline]
fn remote(address: u64, key: u32) -> sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
    sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 { remote_addr: address, rkey: key }
}

/// Where a datagram goes.
#[derive(Debug)]
pub(crate) struct Handle {
    raw: *mut sys::ibv_ah,
    _domain: Rc<Domain>,
}

impl Handle {
    pub(crate) fn new(domain: &Rc<Domain>, path: &Path, rank: Rank) -> Result<Handle> {
        let mut attributes = path.attributes();
        // SAFETY: *Open*.
        let raw = unsafe { (loaded().ibv_create_ah)(domain.raw, &raw mut attributes) };
        if raw.is_null() {
            return Err(failed_errno("ibv_create_ah", Some(rank)));
        }
        Ok(Handle { raw, _domain: Rc::clone(domain) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: *Open*.
        unsafe { (loaded().ibv_destroy_ah)(self.raw) };
    }
}

/// The pair that takes datagrams from everyone who knows its key.
#[derive(Debug)]
pub(crate) struct Datagrams {
    queue: Queue,
}

impl Datagrams {
    /// Ready to receive and to send.
    pub(crate) fn new(
        domain: &Rc<Domain>,
        completions: &Rc<Completions>,
        depths: Depths,
        port: u8,
        key: u32,
    ) -> Result<Datagrams> {
        let queue = Queue::new(domain, completions, sys::IBV_QPT_UD, depths)?;
        let init = sys::ibv_qp_attr { qp_state: sys::IBV_QPS_INIT, port_num: port, qkey: key, ..Default::default() };
        let mask = sys::IBV_QP_STATE | sys::IBV_QP_PKEY_INDEX | sys::IBV_QP_PORT | sys::IBV_QP_QKEY;
        queue.modify(None, init, mask)?;
        let receive = sys::ibv_qp_attr { qp_state: sys::IBV_QPS_RTR, ..Default::default() };
        queue.modify(None, receive, sys::IBV_QP_STATE)?;
        let send = sys::ibv_qp_attr { qp_state: sys::IBV_QPS_RTS, ..Default::default() };
        queue.modify(None, send, sys::IBV_QP_STATE | sys::IBV_QP_SQ_PSN)?;
        Ok(Datagrams { queue })
    }

    /// What peers call it.
    pub(crate) fn number(&self) -> u32 {
        self.queue.number()
    }

    /// Gives it a buffer to receive into.
    pub(crate) fn receive(&self, id: u64, into: Piece) -> Result<()> {
        self.queue.receive(None, id, into)
    }

    /// Sends a piece to the pair `number` behind `to`, which has `key`.
    pub(crate) fn send(&self, id: u64, piece: Piece, to: &Handle, number: u32, key: u32) -> Result<()> {
        let mut request = request(id, sys::IBV_WR_SEND, true, false);
        request.wr.ud =
            sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_3 { ah: to.raw, remote_qpn: number, remote_qkey: key };
        self.queue.post(None, &mut [entry(piece)], request)
    }
}
