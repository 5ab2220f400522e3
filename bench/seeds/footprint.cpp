// SPDX-License-Identifier: MIT OR Apache-2.0
// What malloc and free touch: a child runs them under an allocator, the parent lets it go instruction by instruction (ptrace)
// and writes down the registers and the bytes of each; which memory an instruction reads and writes is told from that by
// footprint.py.
//
// footprint REPORT [KEY=VALUE...] SIZE NODES      the variables are set for the child only
//
// The child allocates and frees blocks of SIZE until its caches are warm, then goes through regions bounded by int3:
//   pairs      `pairs` times malloc and free of one block
//   allocate   NODES times malloc, each followed by a store to the block, as in a transaction that builds a structure
//   release    free of these NODES blocks, in another order
// REPORT: lines of text.
//   rseq ADDRESS, stack FROM TO        where these lie
//   region NAME                        what follows belongs to it
//   block ADDRESS                      malloc returned it
//   done                               a pair, or one malloc with its store, or one free, is over
//   code ADDRESS BYTES                 an instruction seen for the first time, and what follows it: 15 bytes
//   step ADDRESS REGISTERS...          in the order of `registers` below
// Numbers are hexadecimal. Instructions of this program itself are left out.
//
// Restartable sequences would never end, for the kernel restarts them, and writes the thread's rseq area anew, whenever the
// thread has been stopped. So before the regions the thread is unregistered, and its area is left as it was. The kernel does
// not touch it any more, which is right for a thread that is neither preempted nor moved to another cpu.
#if defined(__x86_64__)
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <set>
#include <string>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// What the child says with int3, in RDI; an address goes into RSI.
enum class Mark : unsigned long { pairs, allocate, release, block, done, end, unregister };
constexpr const char* region_names[] = {"pairs", "allocate", "release"};

constexpr int pairs = 24;
constexpr std::size_t most_nodes = 4096;

// ---- the child ----

inline void say(Mark mark, const volatile void* address = nullptr) {
  __asm__ volatile("int3" : : "D"(mark), "S"(address) : "memory");
}

// The parent fills in the arguments of rseq at the first stop, and puts the area back at the second.
void unregister() {
  long number = SYS_getpid;  // where there is no area
  auto first = static_cast<unsigned long>(Mark::unregister);
  __asm__ volatile("int3\n\tsyscall\n\tint3" : "+a"(number), "+D"(first) : : "rcx", "rdx", "rsi", "r10", "r11", "memory");
}

void use(void* block) { *static_cast<volatile char*>(block) = 1; }

void warm_up(std::size_t size, void** blocks, std::size_t nodes) {
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < nodes; ++i) use(blocks[i] = std::malloc(size));
    for (std::size_t i = 0; i < nodes; ++i) std::free(blocks[i]);
  }
  for (int i = 0; i < 1000; ++i) {
    void* const block = std::malloc(size);
    use(block);
    std::free(block);
  }
}

int child(std::size_t size, std::size_t nodes) {
  static void* blocks[most_nodes];
  warm_up(size, blocks, nodes);
  unregister();
  say(Mark::pairs);
  for (int i = 0; i < pairs; ++i) {
    void* const block = std::malloc(size);
    say(Mark::block, block);
    std::free(block);
    say(Mark::done);
  }
  say(Mark::end);
  say(Mark::allocate);
  for (std::size_t i = 0; i < nodes; ++i) {
    blocks[i] = std::malloc(size);
    say(Mark::block, blocks[i]);
    use(blocks[i]);
    say(Mark::done);
  }
  say(Mark::end);
  say(Mark::release);
  const std::size_t stride = nodes % 7 == 0 ? 1 : 7;  // no divisor of their number: each once
  for (std::size_t i = 0; i < nodes; ++i) {
    std::free(blocks[i * stride % nodes]);
    say(Mark::done);
  }
  say(Mark::end);
  return 0;
}

// ---- the parent ----

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "footprint: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

struct Range {
  std::uintptr_t from = 0;
  std::uintptr_t to = 0;
  bool has(std::uintptr_t address) const { return from <= address && address < to; }
};

class Tracer {
 public:
  Tracer(pid_t pid, std::FILE* out) : pid_(pid), out_(out) {}

  // From the first stop to the child's end; its exit status.
  int run() {
    for (int status = 0;;) {
      if (ptrace(PTRACE_CONT, pid_, nullptr, pending_) != 0 || waitpid(pid_, &status, 0) != pid_) fail("the child is gone");
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
      pending_ = WSTOPSIG(status);
      if (pending_ != SIGTRAP) continue;
      pending_ = 0;
      read_registers();
      if (static_cast<Mark>(registers_.rdi) == Mark::unregister) {
        look_around();
        release_area();
      } else if (hear()) {
        region();
      }
    }
  }

 private:
  // Steps until the child says that the region is over.
  void region() {
    for (;;) {
      read_registers();
      if (at_mark()) {
        ++registers_.rip;
        if (ptrace(PTRACE_SETREGS, pid_, nullptr, &registers_) != 0) fail("its registers can not be set");
        if (!hear()) return;
        continue;
      }
      write_down();
      int status = 0;
      if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) != 0 || waitpid(pid_, &status, 0) != pid_)
        fail("the child is gone");
      if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) fail("the child ended within a region");
      if (++steps_ > most_steps) fail("no end of it after so many steps");
    }
  }

  // The mark just passed; false at the end of a region.
  bool hear() {
    const auto mark = static_cast<Mark>(registers_.rdi);
    switch (mark) {
      case Mark::block: std::fprintf(out_, "block %llx\n", registers_.rsi); break;
      case Mark::done: std::fprintf(out_, "done\n"); break;
      case Mark::end: return false;
      default: std::fprintf(out_, "region %s\n", region_names[registers_.rdi]);
    }
    return true;
  }

  bool at_mark() { return program_.has(registers_.rip) && (peek(registers_.rip) & 0xFF) == 0xCC; }

  void write_down() {
    const user_regs_struct& r = registers_;
    if (program_.has(r.rip)) return;
    if (seen_.insert(r.rip).second) {
      const std::uint64_t words[2] = {peek(r.rip), peek(r.rip + 7)};
      std::array<unsigned char, 15> bytes;
      std::memcpy(bytes.data() + 7, &words[1], 8);
      std::memcpy(bytes.data(), &words[0], 8);
      std::fprintf(out_, "code %llx ", r.rip);
      for (const unsigned char b : bytes) std::fprintf(out_, "%02x", b);
      std::fprintf(out_, "\n");
    }
    const unsigned long long registers[] = {r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi,     r.r8,
                                            r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.fs_base, r.gs_base};
    std::fprintf(out_, "step %llx", r.rip);
    for (const unsigned long long value : registers) std::fprintf(out_, " %llx", value);
    std::fprintf(out_, "\n");
  }

  // The child is at its system call; it stops again behind that.
  void release_area() {
    constexpr std::size_t words = 4;  // both ids of the cpu, the sequence, flags and node, mm_cid
    if (rseq_.rseq_abi_pointer == 0) return go_on();
    std::array<std::uint64_t, words> area;
    for (std::size_t i = 0; i < words; ++i) area[i] = peek(rseq_.rseq_abi_pointer + 8 * i);
    area[1] = 0;
    registers_.rax = SYS_rseq;
    registers_.rdi = rseq_.rseq_abi_pointer;
    registers_.rsi = rseq_.rseq_abi_size;
    registers_.rdx = 1;  // unregister
    registers_.r10 = rseq_.signature;
    if (ptrace(PTRACE_SETREGS, pid_, nullptr, &registers_) != 0) fail("its registers can not be set");
    go_on();
    read_registers();
    if (registers_.rax != 0) fail("its rseq area can not be unregistered");
    for (std::size_t i = 0; i < words; ++i)
      if (ptrace(PTRACE_POKEDATA, pid_, rseq_.rseq_abi_pointer + 8 * i, area[i]) != 0)
        fail("its rseq area can not be put back");
  }

  void go_on() {
    int status = 0;
    if (ptrace(PTRACE_CONT, pid_, nullptr, nullptr) != 0 || waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status))
      fail("the child is gone");
  }

  void look_around() {
    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, pid_, sizeof rseq_, &rseq_) <= 0) rseq_ = {};
    const std::string directory = "/proc/" + std::to_string(pid_);
    char self[4096] = {};
    if (readlink((directory + "/exe").c_str(), self, sizeof self - 1) <= 0) fail("its name can not be read");
    std::FILE* const maps = std::fopen((directory + "/maps").c_str(), "r");
    if (maps == nullptr) fail("its mappings can not be read");
    Range stack;
    for (char text[4400]; std::fgets(text, sizeof text, maps) != nullptr;) {
      Range found;
      if (std::sscanf(text, "%" SCNxPTR "-%" SCNxPTR, &found.from, &found.to) != 2) continue;
      if (std::strstr(text, "[stack]") != nullptr) stack = found;
      if (std::strstr(text, " r-xp ") != nullptr && std::strstr(text, self) != nullptr) program_ = found;
    }
    std::fclose(maps);
    if (program_.to == 0) fail("its code was not found");
    std::fprintf(out_, "rseq %llx\nstack %" PRIxPTR " %" PRIxPTR "\n", rseq_.rseq_abi_pointer, stack.from, stack.to);
  }

  void read_registers() {
    if (ptrace(PTRACE_GETREGS, pid_, nullptr, &registers_) != 0) fail("its registers can not be read");
  }

  std::uint64_t peek(std::uintptr_t address) {
    errno = 0;
    const long word = ptrace(PTRACE_PEEKDATA, pid_, address, nullptr);
    return errno == 0 ? static_cast<std::uint64_t>(word) : 0;
  }

  static constexpr long most_steps = 5'000'000;
  pid_t pid_;
  long steps_ = 0;
  std::FILE* out_;
  int pending_ = 0;  // a signal to hand on
  user_regs_struct registers_{};
  Range program_;
  __ptrace_rseq_configuration rseq_{};
  std::set<std::uintptr_t> seen_;
};

// One cpu, the last one it may use: a sequence must find the same slot at its end as at its beginning. The parent stays there,
// too: to wake up the other one on the same cpu takes a tenth of the time.
void stay_on_one_cpu() {
  cpu_set_t may;
  if (sched_getaffinity(0, sizeof may, &may) != 0) return;
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &may)) last = i;
  CPU_ZERO(&may);
  CPU_SET(last, &may);
  sched_setaffinity(0, sizeof may, &may);
}

int parent(int argc, char** argv) {
  std::FILE* const out = std::fopen(argv[1], "w");
  if (out == nullptr) fail(argv[1]);
  stay_on_one_cpu();
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    for (int i = 2; i < argc - 2; ++i) putenv(argv[i]);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execl("/proc/self/exe", argv[0], "--child", argv[argc - 2], argv[argc - 1], nullptr);
    _exit(127);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
    std::fprintf(stderr, "footprint: the child can not be traced\n");
    return 77;
  }
  ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL);
  const int result = Tracer(pid, out).run();
  return std::fclose(out) == 0 ? result : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::size_t nodes = std::strtoul(argv[argc - 1], nullptr, 10);
  if (nodes == 0 || nodes > most_nodes) return 2;
  if (std::strcmp(argv[1], "--child") == 0) return child(std::strtoul(argv[2], nullptr, 10), nodes);
  return parent(argc, argv);
}
#else
int main() { return 77; }  // the parent knows x86-64's registers only
#endif
