// SPDX-License-Identifier: MIT OR Apache-2.0
//! A service of 64 workers: each request makes JSON of records, reads it again, and puts some of it into a cache that all
//! workers share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::{extract::State, routing::get, Router};
use serde_json::{json, Value};

#[derive(Default)]
struct Service {
    turn: AtomicU64,
    cache: Mutex<HashMap<u64, Value>>,
}

fn records(turn: u64) -> Value {
    let rows = 4 + turn * 37 % 90;
    let record = |i: u64| {
        json!({
            "id": i,
            "name": format!("customer {turn}-{i}"),
            "note": "n".repeat(((turn * 13 + i * 7) % 600) as usize),
            "tags": (0..i % 8).map(|t| format!("tag-{t}-{turn}")).collect::<Vec<_>>(),
        })
    };
    Value::Array((0..rows).map(record).collect())
}

async fn order(State(service): State<Arc<Service>>) -> String {
    let turn = service.turn.fetch_add(1, Ordering::Relaxed);
    let text = records(turn).to_string();
    tokio::task::yield_now().await;
    let read: Value = serde_json::from_str(&text).expect("what was written");
    let rows = read.as_array().map_or(0, Vec::len);
    if turn % 3 == 0 {
        service.cache.lock().expect("no panic").insert(turn % 2000, read);
    }
    format!("{rows:6} rows\n")
}

async fn serve(port: u16) -> std::io::Result<()> {
    let app = Router::new().route("/", get(order)).with_state(Arc::new(Service::default()));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let mut end = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        done = async { axum::serve(listener, app).await } => done,
        _ = end.recv() => Ok(()),
    }
}

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|word| word.parse().ok()).expect("a port");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(64).enable_all().build()?;
    runtime.block_on(serve(port))
}
