// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server with tokio, 64 workers, and its clients: a line is a key, the answer is a value that the last client made of it.
//! `cargo run --release [CONNECTIONS [REQUESTS]]` checks every answer and prints what the allocator did.
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use terrace::cs::PerCore;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::RwLock;

#[global_allocator]
static ALLOCATOR: terrace::Terrace = terrace::Terrace;

struct Shared {
    values: RwLock<HashMap<String, Arc<str>>>,
    served: PerCore,
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Some(key) = lines.next_line().await? {
        let known = shared.values.read().await.get(&key).cloned();
        let value = match known {
            Some(value) => value,
            None => {
                let made: Arc<str> = key.repeat(20).into();
                let mut values = shared.values.write().await;
                if values.len() > 5000 {
                    values.clear();
                }
                values.insert(key, made.clone());
                made
            }
        };
        write.write_all(format!("{value}\n").as_bytes()).await?;
        shared.served.add(1);
    }
    Ok(())
}

async fn ask(address: std::net::SocketAddr, client: usize, requests: usize) -> io::Result<()> {
    let (read, mut write) = TcpStream::connect(address).await?.into_split();
    let mut lines = BufReader::new(read).lines();
    for n in 0..requests {
        let key = format!("{}-{}", client % 7, (n * 31) % 10_000);
        write.write_all(format!("{key}\n").as_bytes()).await?;
        let answer = lines.next_line().await?.expect("an answer");
        assert_eq!(answer, key.repeat(20));
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let (clients, requests) = (numbers.next().unwrap_or(200), numbers.next().unwrap_or(500));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(64).enable_io().build()?;
    let shared = Arc::new(Shared { values: RwLock::default(), served: PerCore::new(0) });
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let for_server = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, for_server.clone()));
            }
        });
        let all: Vec<_> = (0..clients).map(|client| tokio::spawn(ask(address, client, requests))).collect();
        for client in all {
            client.await.expect("no client panics")?;
        }
        io::Result::Ok(())
    })?;
    drop(runtime);
    assert_eq!(shared.served.sum(), (clients * requests) as i64);
    println!("{} answers, all right\n{}", shared.served.sum(), terrace::statistics_text());
    Ok(())
}
