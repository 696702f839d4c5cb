// Runs a fuzz target without libFuzzer: over the files of folders, and over a number of changed copies of each.
//
//     build/fuzz_zip tests/fuzz/corpus/zip --changes 1000 --seed 7
//     build/fuzz_zip crash                                            what broke it, once more
//
// An input that breaks the target (an exception that is no umbra::Error, a signal, more than ten seconds, more than two
// gigabytes) ends the process; the input lies then in ./broken-<target>.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr unsigned kSeconds = 10;
constexpr rlim_t kBytes = rlim_t{2} << 30;

std::string g_input, g_broken;

void keep_input() {
  int file = open(g_broken.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  [[maybe_unused]] ssize_t written = write(file, g_input.data(), g_input.size());
  close(file);
}

void on_signal(int number) {
  keep_input();
  signal(SIGABRT, SIG_DFL);
  std::abort();
}

/// A changed copy: bytes replaced, parts left out, doubled, moved or taken from another file, numbers put to their
/// ends.
std::string changed(const std::string& from, const std::string& other, std::mt19937_64& random) {
  std::string text = from;
  auto below = [&](size_t n) { return n ? static_cast<size_t>(random() % n) : 0; };
  for (size_t round = 1 + below(4); round > 0; --round) {
    size_t at = below(text.size() + 1), length = std::min(1 + below(below(8) ? 8 : 256), text.size() - at);
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3: text.insert(at, other.substr(below(other.size()), 1 + below(64))); break;
      case 4:
        std::fill_n(text.begin() + static_cast<long>(at), std::min<size_t>(length, 8), below(2) ? '\xff' : '\0');
        break;
      case 5:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      default: {
        static constexpr const char* kWords[] = {
            "-1", "0", "9223372036854775807", "1e999", "null", "[[[[", "\"\"", "\xff\xfe", "{}"};
        text.replace(at, length, kWords[below(std::size(kWords))]);
      }
    }
  }
  return text;
}

void run(std::string input) {
  g_input = std::move(input);
  alarm(kSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(g_input.data()), g_input.size());
  alarm(0);
}

std::vector<std::filesystem::path> files_of(const char* path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

void watch(const std::string& program) {
  g_broken = "broken-" + program.substr(program.find_last_of("/_") + 1);
  for (int number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) signal(number, on_signal);
  if (__sanitizer_set_death_callback) {
    __sanitizer_set_death_callback(keep_input);  // its own memory needs more than the limit
  } else {
    rlimit limit{kBytes, kBytes};
    setrlimit(RLIMIT_DATA, &limit);
  }
}

}  // namespace

int main(int argc, char** argv) {
  size_t changes = 0, seed = 0;
  std::vector<std::string> corpus;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--changes") && i + 1 < argc) {
      changes = std::strtoull(argv[++i], nullptr, 10);
    } else if (!std::strcmp(argv[i], "--seed") && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      for (const auto& path : files_of(argv[i])) {
        std::ifstream file(path, std::ios::binary);
        if (!file) return std::fprintf(stderr, "cannot read %s\n", path.c_str()), 2;
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      }
    }
  }
  if (corpus.empty()) return std::fprintf(stderr, "usage: %s FOLDER... [--changes N] [--seed N]\n", argv[0]), 2;
  watch(argv[0]);
  std::mt19937_64 random(seed);
  for (const std::string& text : corpus) {
    run(text);
    for (size_t i = 0; i < changes; ++i) run(changed(text, corpus[random() % corpus.size()], random));
  }
  std::printf("%zu inputs: each was read or refused\n", corpus.size() * (changes + 1));
}
