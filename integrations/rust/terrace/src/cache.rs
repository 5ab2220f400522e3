// SPDX-License-Identifier: MIT OR Apache-2.0
use core::alloc::Layout;
use core::cell::Cell;
use core::ffi::{c_int, c_void, CStr};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{align_of, size_of};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use terrace_sys as sys;

type Make<T> = Box<dyn Fn() -> T + Send + Sync>;

thread_local! {
    static PANIC: Cell<Option<Box<dyn Any + Send>>> = const { Cell::new(None) };
}

/// An object cache (libumem's, after Bonwick): objects of one type, which stay constructed while they are free.
///
/// [`get`](Self::get) takes a free object of this core as it was left, or makes a new one. Dropping the [`Object`] puts it back
/// without dropping the `T` in it, so buffers that it owns are there for the next one. An object is dropped, on any thread, when
/// its memory goes back: with the cache, in [`reap`](Self::reap), or when memory is short. Its `drop` must not panic: that ends
/// the process.
///
/// ```
/// use terrace::Cache;
/// let lines = Cache::new(c"lines", || String::with_capacity(1000));
/// let mut line = lines.get();
/// line.clear(); // it may have been used before
/// line.push_str("hello");
/// drop(line);
/// assert!(lines.get().capacity() >= 1000);
/// ```
pub struct Cache<T: Send + 'static> {
    raw: NonNull<sys::umem_cache_t>,
    make: NonNull<Make<T>>, // ours; the constructor's argument, one word
}

// SAFETY: libumem's functions may be called by all threads at once, `make` is Send and Sync, and objects, which are Send, go from
// one thread to another.
unsafe impl<T: Send> Send for Cache<T> {}
unsafe impl<T: Send> Sync for Cache<T> {}

unsafe extern "C" fn construct<T>(object: *mut c_void, make: *mut c_void, _: c_int) -> c_int {
    // SAFETY: `make` is Cache::make, which lives as long as the cache.
    let make = unsafe { &*make.cast::<Make<T>>() };
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(value) => {
            // SAFETY: the cache's size and alignment are those of T.
            unsafe { object.cast::<T>().write(value) };
            0
        }
        Err(panic) => {
            PANIC.set(Some(panic));
            -1
        }
    }
}

unsafe extern "C" fn destruct<T>(object: *mut c_void, _: *mut c_void) {
    // SAFETY: construct() made it, and nobody has it.
    unsafe { object.cast::<T>().drop_in_place() };
}

impl<T: Send + 'static> Cache<T> {
    /// An empty cache. Debuggers show the first 31 bytes of `name`.
    ///
    /// # Panics
    /// There are 16,384 caches, or no memory; or a `T` is aligned to more than a page.
    pub fn new(name: &CStr, make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        let make = NonNull::from(Box::leak(Box::<Make<T>>::new(Box::new(make))));
        // SAFETY: the functions fit the size and alignment; the library copies the name.
        let raw = unsafe {
            sys::umem_cache_create(
                name.as_ptr(),
                size_of::<T>().max(1),
                align_of::<T>(),
                Some(construct::<T>),
                Some(destruct::<T>),
                None,
                make.as_ptr().cast(),
                core::ptr::null_mut(),
                0,
            )
        };
        let raw = NonNull::new(raw).unwrap_or_else(|| panic!("the cache {name:?} can not be made"));
        Self { raw, make }
    }

    /// An object, constructed. Without memory it ends the process as other allocations do.
    ///
    /// # Panics
    /// As `make` does.
    #[must_use]
    pub fn get(&self) -> Object<'_, T> {
        self.try_get().unwrap_or_else(|| std::alloc::handle_alloc_error(Layout::new::<T>()))
    }

    /// An object, constructed, or `None` without memory.
    ///
    /// # Panics
    /// As `make` does.
    #[must_use]
    pub fn try_get(&self) -> Option<Object<'_, T>> {
        // SAFETY: the cache lives as long as `self`.
        let object = unsafe { sys::umem_cache_alloc(self.raw.as_ptr(), sys::UMEM_DEFAULT) };
        match NonNull::new(object.cast::<T>()) {
            Some(object) => Some(Object { object, cache: self, owns: PhantomData }),
            None => match PANIC.take() {
                Some(panic) => resume_unwind(panic),
                None => None,
            },
        }
    }

    /// Drops objects of all caches that have been free for a while; at most once in ten seconds.
    pub fn reap() {
        // SAFETY: no requirements.
        unsafe { sys::umem_reap() };
    }
}

impl<T: Send + 'static> Drop for Cache<T> {
    /// Drops all free objects. One that was leaked (`mem::forget`) stays, and a line on standard error tells.
    fn drop(&mut self) {
        // SAFETY: objects borrow the cache, so none is in use but those leaked, which stay readable. The destructors have run when
        // the first returns, and nothing is constructed any more.
        unsafe {
            sys::umem_cache_destroy(self.raw.as_ptr());
            drop(Box::from_raw(self.make.as_ptr()));
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// An object of a [`Cache`], which goes back when this is dropped.
pub struct Object<'a, T: Send + 'static> {
    object: NonNull<T>,
    cache: &'a Cache<T>,
    owns: PhantomData<T>,
}

// SAFETY: it owns a T, which any thread may give back.
unsafe impl<T: Send> Send for Object<'_, T> {}
unsafe impl<T: Send + Sync> Sync for Object<'_, T> {}

impl<T: Send> Deref for Object<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: constructed, and ours alone.
        unsafe { self.object.as_ref() }
    }
}

impl<T: Send> DerefMut for Object<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: constructed, and ours alone.
        unsafe { self.object.as_mut() }
    }
}

impl<T: Send> Drop for Object<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the object came from this cache.
        unsafe { sys::umem_cache_free(self.cache.raw.as_ptr(), self.object.as_ptr().cast()) };
    }
}

impl<T: Send + fmt::Debug> fmt::Debug for Object<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
