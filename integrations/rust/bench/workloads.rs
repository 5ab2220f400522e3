// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Rust programs do with memory. `cargo bench [--features NAME]` measures it on one allocator.
use allocator as _;
use criterion::{criterion_group, criterion_main, Criterion};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::mpsc;
use std::thread;
use workloads::CpuTime;

/// Vectors that nobody told how long they will be, of every length up to 1,000.
fn vec_growth() {
    for length in 0..1000u64 {
        let mut grown = Vec::new();
        for n in 0..length {
            grown.push(black_box(n));
        }
        black_box(grown);
    }
}

/// Words that are inserted, looked up, removed and inserted again.
fn strings_in_a_map() {
    let mut map = HashMap::new();
    for n in 0..10_000 {
        map.insert(format!("key {n}"), "v".repeat(n % 100));
    }
    for n in (0..10_000).step_by(2) {
        black_box(map.remove(&format!("key {n}")));
    }
    for n in 0..5_000 {
        map.insert(format!("another key {n}"), n.to_string());
    }
    black_box(map);
}

/// A window of 5,000 of 20,000 entries, in an order without a pattern.
fn ordered_map() {
    let mut map = BTreeMap::new();
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for n in 0..20_000 {
        map.insert(key(n), Box::new([n; 6]));
        if n >= 5_000 {
            black_box(map.remove(&key(n - 5_000)));
        }
    }
    black_box(map);
}

/// Boxes that one thread makes and another one drops.
fn boxes_between_threads() {
    let (to_consumer, from_producers) = mpsc::sync_channel::<Box<[u8; 200]>>(1000);
    let producers: Vec<_> = (0..2)
        .map(|_| {
            let sender = to_consumer.clone();
            thread::spawn(move || {
                for n in 0..20_000 {
                    sender.send(Box::new([n as u8; 200])).expect("a consumer");
                }
            })
        })
        .collect();
    drop(to_consumer);
    let sum: u64 = from_producers.iter().map(|block| u64::from(block[7])).sum();
    black_box(sum);
    producers.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

/// Tasks that each make text and send it to another one.
async fn storm() {
    let tasks: Vec<_> = (0..5_000)
        .map(|n| {
            let (answer, question) = tokio::sync::oneshot::channel();
            tokio::spawn(async move { answer.send(format!("answer {n} {}", "x".repeat(n % 300))) });
            tokio::spawn(async move { question.await.expect("an answer").len() })
        })
        .collect();
    for task in tasks {
        black_box(task.await.expect("no panic"));
    }
}

fn all(criterion: &mut Criterion<CpuTime>) {
    criterion.bench_function("vec_growth", |b| b.iter(vec_growth));
    criterion.bench_function("strings_in_a_map", |b| b.iter(strings_in_a_map));
    criterion.bench_function("ordered_map", |b| b.iter(ordered_map));
    criterion.bench_function("boxes_between_threads", |b| b.iter(boxes_between_threads));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("threads");
    criterion.bench_function("tokio_storm", |b| b.iter(|| runtime.block_on(storm())));
}

criterion_group! {
    name = workloads;
    config = Criterion::default().with_measurement(CpuTime);
    targets = all
}
criterion_main!(workloads);
