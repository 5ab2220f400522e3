// SPDX-License-Identifier: MIT OR Apache-2.0
#include "reader.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace terrace::trace {

static_assert(std::endian::native == std::endian::little, "headers are read in place");

namespace {

std::string at(std::uint64_t offset) { return " at byte " + std::to_string(offset); }

}  // namespace

Trace::Trace(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) throw Damaged(std::strerror(errno));
  size_ = static_cast<std::size_t>(status.st_size);
  void* const area = size_ < page_bytes ? MAP_FAILED : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (size_ < page_bytes) throw Damaged("no trace: shorter than its header");
  if (area == MAP_FAILED) throw Damaged(std::strerror(errno));
  bytes_ = static_cast<const unsigned char*>(area);
  if (std::memcmp(header().magic, file_magic, sizeof file_magic) != 0) throw Damaged("no trace: it does not begin like one");
  if (header().version != file_version)
    throw Damaged("a trace of version " + std::to_string(header().version) + ", not " + std::to_string(file_version));
  find_chunks();
}

Trace::~Trace() {
  if (bytes_ != nullptr) munmap(const_cast<unsigned char*>(bytes_), size_);
}

std::string Trace::command() const { return {header().command, strnlen(header().command, sizeof header().command)}; }

void Trace::find_chunks() {
  for (std::size_t offset = page_bytes; offset < size_;) {
    if (size_ - offset < sizeof(ChunkHeader)) throw Damaged("truncated" + at(offset));
    const auto* const chunk = reinterpret_cast<const ChunkHeader*>(bytes_ + offset);
    if (chunk->magic == 0) {  // reserved and not used; a whole page, because lengths are multiples of it
      if (size_ - offset < page_bytes) throw Damaged("truncated" + at(offset));
      offset += page_bytes;
      continue;
    }
    const bool possible = chunk->magic == chunk_magic && chunk->bytes >= page_bytes && chunk->bytes % page_bytes == 0 &&
                          chunk->used <= chunk->bytes - sizeof *chunk && chunk->thread < size_ / page_bytes;
    if (!possible) throw Damaged("damaged: no chunk" + at(offset));
    if (chunk->bytes > size_ - offset)
      throw Damaged("truncated: the chunk" + at(offset) + " has " + std::to_string(chunk->bytes) +
                    " bytes, the file ends after " + std::to_string(size_ - offset));
    if (chunk->thread >= chunks_.size()) chunks_.resize(chunk->thread + 1);
    chunks_[chunk->thread].push_back(chunk);
    offset += chunk->bytes;
  }
}

bool ThreadEvents::open_chunk() {
  if (next_chunk_ == chunks_->size()) return false;
  const ChunkHeader* const chunk = (*chunks_)[next_chunk_++];
  const auto* const first = reinterpret_cast<const unsigned char*>(chunk + 1);
  decoder_ = Decoder(first, first + chunk->used);
  before_ = {chunk->sequence, no_address};
  return true;
}

std::optional<Event> ThreadEvents::next() {
  while (decoder_.at_end()) {
    if (!open_chunk()) return {};
  }
  const std::uint64_t offset = trace_->offset(decoder_.at());
  const Event event = decoder_.event(before_);
  const std::uint64_t last = event.kind == Kind::realloc ? event.end_sequence : event.sequence;
  const bool ordered = event.sequence >= free_sequence_ && (last > event.sequence || event.kind != Kind::realloc);
  if (!decoder_.good() || !ordered || last == UINT64_MAX) throw Damaged("damaged: no event" + at(offset));
  free_sequence_ = last + 1;
  return event;
}

Merge::Merge(const Trace& trace) : current_(trace.threads()), half_(trace.threads()) {
  threads_.reserve(trace.threads());
  for (std::uint32_t thread = 0; thread < trace.threads(); ++thread) {
    threads_.emplace_back(trace, thread);
    advance(thread);
  }
}

void Merge::advance(std::uint32_t thread) {
  const std::optional<Event> event = threads_[thread].next();
  if (!event) return;
  current_[thread] = *event;
  heads_.push({event->sequence, thread});
}

std::optional<Merge::Step> Merge::next() {
  if (heads_.empty()) return {};
  const Head head = heads_.top();
  heads_.pop();
  if (head.sequence < free_sequence_) throw Damaged("damaged: two events with number " + std::to_string(head.sequence));
  free_sequence_ = head.sequence + 1;

  Step step;
  step.event = current_[head.thread];
  step.thread = head.thread;
  const bool second_half = half_[head.thread];
  step.releases = layout(step.event.kind).releases && !second_half;
  step.allocates = layout(step.event.kind).allocates && (second_half || !step.releases);
  half_[head.thread] = step.event.kind == Kind::realloc && !second_half;
  if (half_[head.thread]) {
    heads_.push({step.event.end_sequence, head.thread});
  } else {
    advance(head.thread);
  }
  return step;
}

std::optional<Object> Calls::take(std::uint64_t address) {
  const auto found = live_.find(address);
  if (found == live_.end()) return {};
  const Object object = found->second;
  live_.erase(found);
  return object;
}

Call Calls::allocate(const Merge::Step& step) {
  Call call;
  call.kind = step.event.kind;
  call.thread = step.thread;
  call.alignment_log2 = step.event.alignment_log2;
  call.sequence = step.event.kind == Kind::realloc ? step.event.end_sequence : step.event.sequence;
  call.object = Object{objects_++, step.event.size, number_++, step.thread};
  live_.emplace(step.event.allocated, *call.object);
  if (step.event.kind == Kind::realloc) {
    call.old = std::exchange(reallocated_[step.thread], std::nullopt);
    if (!call.old) call.kind = Kind::malloc;
  }
  return call;
}

std::optional<Call> Calls::step(const Merge::Step& step) {
  if (step.allocates) return allocate(step);
  const std::optional<Object> object = take(step.event.released);
  if (!object) ++unknown_;
  if (step.event.kind == Kind::realloc) {
    reallocated_[step.thread] = object;
    return {};
  }
  if (!object) return {};
  ++number_;
  return Call{Kind::free, step.thread, 0, step.event.sequence, object, {}};
}

std::optional<Call> Calls::next() {
  for (;;) {
    const std::optional<Merge::Step> next = waiting_ ? std::exchange(waiting_, std::nullopt) : merge_.next();
    if (!next) return {};
    if (next->allocates) {
      if (const std::optional<Object> left = take(next->event.allocated)) {
        waiting_ = next;
        ++missed_;
        return Call{Kind::free, next->thread, 0, next->event.sequence, left, {}};
      }
    }
    if (std::optional<Call> call = step(*next)) return call;
  }
}

}  // namespace terrace::trace
