//! The programs that run on the lab's hosts. Each ends when its time is up or when it is killed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use tailback::lab::{Lab, LabSpec};

const PACE: Duration = Duration::from_millis(1);
/// Ten times what the longest queue of any test takes.
const LOST: Duration = Duration::from_millis(100);

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

/// Answers on an address: swallows what connections bring, and sends datagrams back.
fn serve(words: &[String]) {
    let listener = TcpListener::bind(&words[0]).expect("listens");
    let socket = UdpSocket::bind(&words[0]).expect("listens");
    std::thread::spawn(move || {
        let mut message = [0; 8];
        while let Ok((count, from)) = socket.recv_from(&mut message) {
            // What cannot be sent back is a lost ping to the one who waits for it.
            let _ = socket.send_to(&message[..count], from);
        }
    });
    println!("ready");
    for stream in listener.incoming() {
        let mut stream = stream.expect("accepts");
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            // Any error is a client that was killed.
            while let Ok(1..) = stream.read(&mut buffer) {}
        });
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("sets an option");
    stream
}

/// Sends as much as it can, until it is killed.
fn bulk(words: &[String]) {
    let mut stream = connect(&words[0]);
    let chunk = vec![0; 1 << 16];
    while stream.write_all(&chunk).is_ok() {}
}

/// Eight bytes to and fro for some seconds; prints how many were answered, the mean and median of their times in
/// microseconds, and how many were lost.
///
/// Datagrams, because a lost one is then a loss and not a delay: TCP would wait 200 ms and more to send it again, forty
/// times what the queue takes. At most one per `PACE`: without a pace, ten milliseconds in which a busy machine lets the
/// load pause give more samples of an empty queue than the seconds around them give of a full one.
fn ping(words: &[String]) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("binds");
    socket.connect(&words[0]).expect("takes an address");
    socket.set_read_timeout(Some(LOST)).expect("sets an option");
    let limit = Duration::from_secs_f64(words[1].parse().expect("is a number"));
    let (start, mut times, mut lost) = (Instant::now(), Vec::new(), 0);
    for number in 0u64.. {
        let sent = Instant::now();
        if sent.duration_since(start) > limit {
            break;
        }
        socket.send(&number.to_ne_bytes()).expect("sends");
        let answered = loop {
            let mut answer = [0; 8];
            match socket.recv(&mut answer) {
                // An answer that was given up on may still come.
                Ok(_) if u64::from_ne_bytes(answer) != number => continue,
                result => break result.is_ok(),
            }
        };
        // The first one finds caches cold and addresses unlearnt.
        match answered {
            true if number > 0 => times.push(sent.elapsed().as_secs_f64() * 1e6),
            true => {}
            false => lost += 1,
        }
        std::thread::sleep(PACE.saturating_sub(sent.elapsed()));
    }
    assert!(!times.is_empty(), "none of {lost} pings was answered");
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    println!("{} {mean} {} {lost}", times.len(), times[times.len() / 2]);
}

/// Sends a number of bytes; prints the seconds until the last one arrived.
fn transfer(words: &[String]) {
    let mut stream = connect(&words[0]);
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
