// SPDX-License-Identifier: MIT OR Apache-2.0
//! Object caches: when objects are made and dropped, by whom, and what a panic does.
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use terrace::{Cache, Object};

#[derive(Default)]
struct Counts {
    made: AtomicUsize,
    dropped: AtomicUsize,
}

struct Counted(Arc<Counts>, Vec<u8>);
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Relaxed);
    }
}

fn counted() -> (Arc<Counts>, Cache<Counted>) {
    let counts = Arc::new(Counts::default());
    let of_cache = counts.clone();
    let cache = Cache::new(c"counted", move || {
        of_cache.made.fetch_add(1, Relaxed);
        Counted(of_cache.clone(), Vec::new())
    });
    (counts, cache)
}

#[test]
fn objects_stay_as_they_were_left_and_are_dropped_with_the_cache() {
    let (counts, cache) = counted();
    for _ in 0..1000 {
        let mut object = cache.get();
        object.1.push(1);
    }
    // Whoever moves to another core makes another one there.
    let made = counts.made.load(Relaxed);
    assert!((1..100).contains(&made), "{made} made");
    let many: Vec<_> = (0..100).map(|_| cache.get()).collect();
    assert!(many.iter().map(|object| object.1.len()).sum::<usize>() <= 1000);
    drop(many);
    drop(cache);
    assert_eq!(counts.made.load(Relaxed), counts.dropped.load(Relaxed));
    assert_eq!(Arc::strong_count(&counts), 1, "the constructor is dropped, too");
}

#[test]
fn objects_go_from_one_thread_to_another() {
    let (counts, cache) = counted();
    thread::scope(|scope| {
        let (to, from) = std::sync::mpsc::channel::<Object<'_, Counted>>();
        scope.spawn(move || from.iter().map(|object| object.1.len()).sum::<usize>());
        for _ in 0..3 {
            let (to, cache) = (to.clone(), &cache);
            scope.spawn(move || (0..1000).for_each(|_| to.send(cache.get()).unwrap()));
        }
    });
    drop(cache);
    assert_eq!(counts.made.load(Relaxed), counts.dropped.load(Relaxed));
}

#[test]
fn a_panic_of_the_constructor_is_the_callers() {
    let panics = Arc::new(AtomicUsize::new(0));
    let left = panics.clone();
    let cache = Cache::new(c"panics", move || assert_ne!(left.fetch_add(1, Relaxed), 0, "the first fails"));
    let panic = catch_unwind(AssertUnwindSafe(|| drop(cache.get()))).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("the first fails"));
    let _unit: Object<'_, ()> = cache.get(); // of size 0, and the cache works on
    assert_eq!(panics.load(Relaxed), 2);
}

#[test]
fn types_of_any_alignment_have_it() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    #[repr(align(64))]
    struct Line(u8);
    let (pages, lines) = (Cache::new(c"pages", || Page([7; 4096])), Cache::new(c"lines", || Line(7)));
    let pages: Vec<_> = (0..20).map(|_| pages.get()).map(|page| (&*page as *const Page as usize, page.0[4095])).collect();
    let lines: Vec<_> = (0..20).map(|_| lines.get()).map(|line| (&*line as *const Line as usize, line.0)).collect();
    assert!(pages.iter().all(|(at, byte)| at % 4096 == 0 && *byte == 7));
    assert!(lines.iter().all(|(at, byte)| at % 64 == 0 && *byte == 7));
}

#[test]
fn a_leaked_object_outlives_the_cache() {
    let (counts, cache) = counted();
    let object = cache.get();
    let leaked = &*object as *const Counted;
    std::mem::forget(object);
    drop(cache); // says that it is not empty
    assert_eq!((counts.made.load(Relaxed), counts.dropped.load(Relaxed)), (1, 0));
    assert!(Arc::ptr_eq(&unsafe { leaked.as_ref() }.unwrap().0, &counts), "it is readable");
}
