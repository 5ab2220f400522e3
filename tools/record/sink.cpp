// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sink.h"

#include "files.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace terrace::record {

namespace {

using trace::ChunkHeader;
using trace::FileHeader;

constexpr std::uint32_t first_chunk = 1 << 12;  // a program may have ten thousand threads of a few calls each
constexpr std::uint32_t largest_chunk = 1 << 20;

enum class State : std::uint32_t { unknown = 0, beginning, recording, stopped };

// Alone on a page that the kernel makes zero in a child of fork, however the child was made: `unknown` again. A child of
// vfork shares the memory, and writes into its parent's trace as the thread that it stands for.
struct Shared {
  std::atomic<State> state;
};

struct Process {
  std::atomic<Shared*> shared{nullptr};
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint64_t> end_of_file{0};
  std::atomic<std::uint32_t> threads{0};
  std::uint32_t generation = 0;  // counts the processes from the first one to this: forked, forked, ...
  std::uint64_t id = 0;
  FileHeader* header = nullptr;
  pthread_key_t at_thread_end{};
  char pattern[path_bytes] = {};
  char path[path_bytes] = {};
};
constinit Process process;

struct Lane {
  unsigned char* at = nullptr;
  unsigned char* end = nullptr;
  ChunkHeader* chunk = nullptr;
  trace::Before before;
  std::uint32_t thread = 0;
  std::uint32_t generation = 0;  // that of the process the chunk belongs to; its chunks are not mapped in a child
  std::uint32_t next_bytes = first_chunk;
  bool inside = false;
};
constinit thread_local Lane lane;

void unmap_chunk() {
  if (lane.chunk != nullptr && lane.generation == process.generation) munmap(lane.chunk, lane.chunk->bytes);
  lane.chunk = nullptr;
  lane.at = lane.end = nullptr;
}

// Runs among the destructors of the thread's data. If one that follows allocates, there is a new chunk and another round.
void end_thread(void*) {
  const Scope scope;
  if (!recording()) return;  // in a fresh child of fork there may be something else at that address
  unmap_chunk();
  lane.next_bytes = first_chunk;
}

// A page that forgets in children, and what else is made once and not once per process.
Shared* make_shared() {
  void* const page = mmap(nullptr, trace::page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  auto* const shared = static_cast<Shared*>(page);
  const char* const pattern = secure_getenv("TERRACE_RECORD_FILE");
  const bool wanted = pattern != nullptr && std::strlen(pattern) < path_bytes;
  if (wanted) std::memcpy(process.pattern, pattern, std::strlen(pattern) + 1);
  if (!wanted || madvise(page, trace::page_bytes, MADV_WIPEONFORK) != 0 ||
      pthread_key_create(&process.at_thread_end, end_thread) != 0)
    shared->state.store(State::stopped, std::memory_order_relaxed);
  Shared* none = nullptr;
  if (process.shared.compare_exchange_strong(none, shared, std::memory_order_acq_rel)) return shared;
  munmap(page, trace::page_bytes);
  return none;
}

void fill_header(FileHeader& header, std::uint64_t parent) {
  header.version = trace::file_version;
  header.process = process.id;
  header.parent = parent;
  prctl(PR_GET_NAME, header.command);
  std::memcpy(header.magic, trace::file_magic, sizeof header.magic);
}

bool begin_process() {
  const std::uint64_t parent = process.id;
  process.id = static_cast<std::uint64_t>(getpid());
  process.sequence.store(0, std::memory_order_relaxed);
  process.threads.store(0, std::memory_order_relaxed);
  process.end_of_file.store(trace::page_bytes, std::memory_order_relaxed);
  if (!create_file(process.pattern, process.id, process.path)) return false;
  void* const page = map_part(process.path, 0, trace::page_bytes);
  if (page == nullptr) return false;
  process.header = static_cast<FileHeader*>(page);
  fill_header(*process.header, parent);
  ++process.generation;
  return true;
}

// The thread that comes first begins; others that come meanwhile are not recorded. In a child of fork there are no others.
bool begin(Shared& shared) {
  State unknown = State::unknown;
  if (!shared.state.compare_exchange_strong(unknown, State::beginning)) return unknown == State::recording;
  const int error = errno;
  const bool begun = begin_process();
  shared.state.store(begun ? State::recording : State::stopped, std::memory_order_release);  // pairs with recording()
  errno = error;
  return begun;
}

void stop(int reason) {
  process.header->incomplete = static_cast<std::uint32_t>(reason);
  process.shared.load(std::memory_order_relaxed)->state.store(State::stopped, std::memory_order_relaxed);
}

bool map_next_chunk(std::uint64_t sequence) {
  const std::uint32_t bytes = lane.next_bytes;
  const std::uint64_t offset = process.end_of_file.fetch_add(bytes, std::memory_order_relaxed);
  void* const part = map_part(process.path, offset, bytes);
  if (part == nullptr) {
    stop(errno);
    return false;
  }
  lane.chunk = static_cast<ChunkHeader*>(part);
  lane.chunk->bytes = bytes;
  lane.chunk->thread = lane.thread;
  lane.chunk->sequence = sequence;
  __atomic_store_n(&lane.chunk->magic, trace::chunk_magic, __ATOMIC_RELEASE);
  lane.at = reinterpret_cast<unsigned char*>(lane.chunk + 1);
  lane.end = static_cast<unsigned char*>(part) + bytes;
  lane.before = {sequence, trace::no_address};
  if (lane.next_bytes < largest_chunk) lane.next_bytes *= 4;
  return true;
}

__attribute__((cold, noinline)) bool next_chunk(std::uint64_t sequence) {
  const int error = errno;
  if (lane.generation != process.generation) {
    lane.chunk = nullptr;
    lane.next_bytes = first_chunk;
    lane.thread = process.threads.fetch_add(1, std::memory_order_relaxed);
    lane.generation = process.generation;
  }
  unmap_chunk();
  const bool mapped = map_next_chunk(sequence);
  // May allocate, which is not recorded: this is inside.
  if (mapped) pthread_setspecific(process.at_thread_end, &lane);
  errno = error;
  return mapped;
}

}  // namespace

Scope::Scope() noexcept : outermost_(!lane.inside) { lane.inside = true; }
Scope::~Scope() {
  if (outermost_) lane.inside = false;
}

bool recording() noexcept {
  Shared* shared = process.shared.load(std::memory_order_acquire);
  if (shared == nullptr) [[unlikely]]
    shared = make_shared();
  if (shared == nullptr) [[unlikely]]
    return false;
  const State state = shared->state.load(std::memory_order_acquire);
  if (state == State::recording) [[likely]]
    return true;
  return state == State::unknown && begin(*shared);
}

std::uint64_t next_sequence() noexcept { return process.sequence.fetch_add(1, std::memory_order_relaxed); }

void write(const trace::Event& event) noexcept {
  const bool room =
      lane.generation == process.generation && static_cast<std::size_t>(lane.end - lane.at) >= trace::longest_event;
  if (!room && !next_chunk(event.sequence)) return;
  lane.at = trace::put_event(lane.at, event, lane.before);
  const auto used = static_cast<std::uint32_t>(lane.at - reinterpret_cast<unsigned char*>(lane.chunk + 1));
  __atomic_store_n(&lane.chunk->used, used, __ATOMIC_RELEASE);  // after the event: a reader never sees half of one
}

}  // namespace terrace::record
