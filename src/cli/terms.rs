//! The words of tables and options, for people who know networks and not this program.

/// The glossary, as `tailback help terms` prints it.
pub(super) const TERMS: &str = "\
What the words of tables and options mean

canary        a kernel that is measured: lat, bw-sync, allreduce, ...; or a
              program (tailback app)
congestor     a kernel that loads the network meanwhile: a2a, incast,
              put-incast, get-bcast, ...
idle, loaded  measured without congestors, and while they run. GPCNeT's
              format and result files say isolated for idle
added         loaded minus idle, as a time; of a bandwidth, the time that a
              MiB takes longer
impact        loaded over idle, as a factor: 2x is twice as slow. GPCNeT's
              Congestion Impact
[low, high]   95% confidence interval, over placements; +-5% is half of its
              width
placement     which nodes measure and which load; each is drawn anew and
              measured once
block         one canary in one state, without a pause. Idle and loaded blocks
              take turns
iteration     what is timed once: a message, an exchange, a collective. Ranks
              that wait for each other in it count once
algbw, busbw  algorithm bandwidth of a collective, its vector's length over
              time, and bus bandwidth, what each rank sends over time, which
              its link bounds: times 2(n-1)/n (allreduce) or (n-1)/n
              (allgather, reduce-scatter, all-to-all), as NCCL's tests
time-p90      time-weighted 90th percentile: a canary finds the network like
              this, or better, for 90% of the time. p90 is that of messages.
              Of open loops both are the same
headline      the statistic that decides: time-p90 of latencies, bytes over
              time of bandwidths, the mean of a program's repetitions
onset, knee   of a sweep: the least load at which an impact above 1.1 is shown,
              and the load at which the curve bends up
ran full      a port's queue had no room: it dropped packets, marked them, or
              (simulated) made the sender wait. Canaries of bandwidth do that
              while idle, too
hot spot      the port that load made worst: at least twice as much dropped,
              marked or held back a second as while idle
open loop     messages are sent at random moments and timed from when they
              were due: what traffic meets that does not wait for the network.
              Closed loop: one after the other, as GPCNeT and MPI programs do
late, lost    messages of an open loop that began late, as the one before was
              not over; those not timed
covered       the share of the time of a closed loop that is inside timed
              iterations
burst         load that is on for a time (--on) and then pauses (--off), at
              the same moments on all ranks. Latency is folded: shown by the
              time since the onset of the last burst
felt          the time from a burst's onset until latency is more than 10%
              above idle
recovery      the time from a burst's end until latency is back within 10% of
              idle
congested     the share of the time in which a canary was slower than twice
              its idle median
next placement (95%)  prediction interval: where the impact of one more
              placement lies
bypass control  in the emulated cluster: canaries whose packets wait in no
              queue, under the same load. What is left is the processors'
              doing, not the network's
round         of a map: pairs of nodes that are measured at the same time, with
              every node in one of them
slice         a short stretch of the same work; a map tells the median of a
              pair's slices, and the worst
suspect       a node, group or pair of groups that is slower than its peers by
              more than chance makes any of them (tailback locate)
false alarms  how often a system without faults has any suspect: of all that
              was looked at together
not reportable  what was measured does not carry an answer; the reason is
              given with it
verdict       by the worst impact that can be reported: none below 1.1x or
              where the interval has 1 in it, mild below 2x, strong below 10x,
              severe from 10x. An impact whose interval's ends are more than
              100 times apart ([uncertain]) decides nothing

docs/methodology.md has the definitions.";
