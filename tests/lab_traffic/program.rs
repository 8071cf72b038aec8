//! The programs that run on the lab's hosts. Each ends when its time is up or when it is killed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tailback::lab::{Lab, LabSpec};

const ECHO: u8 = b'e';
const SINK: u8 = b's';
const PACE: Duration = Duration::from_millis(1);

/// The program of this name.
pub fn named(name: &str) -> Option<fn(&[String])> {
    match name {
        "serve" => Some(serve),
        "bulk" => Some(bulk),
        "ping" => Some(ping),
        "transfer" => Some(transfer),
        "hold" => Some(hold),
        _ => None,
    }
}

/// Answers on an address: a connection's first byte says whether to send back or to swallow what follows.
fn serve(words: &[String]) {
    let listener = TcpListener::bind(&words[0]).expect("listens");
    println!("ready");
    for stream in listener.incoming() {
        let mut stream = stream.expect("accepts");
        std::thread::spawn(move || {
            let mut kind = [0];
            stream.read_exact(&mut kind).expect("says its kind");
            stream.set_nodelay(true).expect("sets an option");
            let mut buffer = vec![0; if kind[0] == ECHO { 8 } else { 1 << 16 }];
            // Any error is a client that was killed.
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                if kind[0] == ECHO && stream.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
        });
    }
}

fn connect(address: &str, kind: u8) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_nodelay(true).expect("sets an option");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("sets an option");
    stream.write_all(&[kind]).expect("says its kind");
    stream
}

/// Sends as much as it can, until it is killed.
fn bulk(words: &[String]) {
    let mut stream = connect(&words[0], SINK);
    let chunk = vec![0; 1 << 16];
    while stream.write_all(&chunk).is_ok() {}
}

/// Eight bytes to and fro for some seconds; prints how often, and the mean and median in microseconds.
///
/// At most one in `PACE`: without a pace, ten milliseconds in which a busy machine lets the load pause would give more
/// samples of an empty queue than the seconds around them give of a full one.
fn ping(words: &[String]) {
    let mut stream = connect(&words[0], ECHO);
    let limit = Duration::from_secs_f64(words[1].parse().expect("is a number"));
    let (start, mut times) = (Instant::now(), Vec::new());
    let mut message = [0; 8];
    while start.elapsed() < limit {
        let sent = Instant::now();
        stream.write_all(&message).expect("sends");
        stream.read_exact(&mut message).expect("is answered");
        times.push(sent.elapsed().as_secs_f64() * 1e6);
        std::thread::sleep(PACE.saturating_sub(sent.elapsed()));
    }
    // The first one finds caches cold and addresses unlearnt.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    println!("{} {mean} {}", times.len(), times[times.len() / 2]);
}

/// Sends a number of bytes; prints the seconds until the last one arrived.
fn transfer(words: &[String]) {
    let mut stream = connect(&words[0], SINK);
    let mut left: usize = words[1].parse().expect("is a number");
    let (start, chunk) = (Instant::now(), vec![0; 1 << 16]);
    while left > 0 {
        let now = left.min(chunk.len());
        stream.write_all(&chunk[..now]).expect("sends");
        left -= now;
    }
    stream.shutdown(std::net::Shutdown::Write).expect("ends");
    assert_eq!(stream.read(&mut [0]).expect("the other side ends too"), 0);
    println!("{}", start.elapsed().as_secs_f64());
}

/// Makes a lab and sleeps until it is killed.
fn hold(words: &[String]) {
    let spec: LabSpec = serde_json::from_str(&words[0]).expect("is a description");
    let _lab = Lab::up(&spec).expect("comes up");
    println!("up");
    std::thread::sleep(Duration::from_secs(600));
}
