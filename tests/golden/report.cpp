// golden_report: how the built operators fare against the golden records, operator by operator and level by level.
//
//     build/golden_report [--op SUBSTRING] [--level forward,grad,jvp,fake,errors,functional] [--group NAME] [--verbose]
//     [--floor FILE] build/golden_report --level robust       # the records' calls with something made wrong
//     build/golden_report --level vmap               # the records' inputs stacked, against a loop
//     build/golden_report --level second             # gradients of gradients, against differences
//     build/golden_report --level calls              # the operators that composites are made of
//     build/golden_report --level aot                # the records' calls compiled ahead of time, gradients included
//     build/golden_report --level variants,layout,replay   # what holds of every operator: properties.cpp
//
// Each operator's records run in a child process, so that a crash fails only the record it happens in. With --floor,
// the exit status is 1 where a level falls below the share that the file demands ("forward 98.0"). With --scores, the
// counts of each operator go to a file, which tools/operator_table.py reads.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "levels.h"
#include "umbra/core/warning.h"
#include "umbra/transform/vmap.h"

namespace umbra::golden {
namespace {

using Check = bool (*)(const Operator&, const Group&, const Json&);
const std::vector<std::pair<std::string, Check>> kLevels = {
    {"forward", check_forward}, {"grad", check_gradient}, {"jvp", check_tangent},
    {"fake", check_fake},       {"errors", check_error},  {"functional", check_functional},
    {"robust", check_robust},   {"vmap", check_vmap},     {"symbolic", check_symbolic},
    {"second", check_second},   {"calls", check_calls},   {"variants", check_variants},
    {"layout", check_layout},   {"replay", check_replay}, {"aot", check_aot},
    {"hooks", check_hooks}};

struct Options {
  std::string folder = UMBRA_GOLDEN_DATA, op, group, floor, scores;
  std::set<std::string> levels{"forward", "grad", "jvp", "fake", "errors", "functional"};
  bool verbose = false;
};

struct Count {
  int passed = 0, failed = 0;
};

/// One check in a line of text, as it comes back from the child.
struct Outcome {
  std::string level, id, message;
  char result;  // p, f or s
};

Outcome run_check(const std::string& level, Check check, const Operator& op, const Group& group, const Json& record) {
  Outcome out{level, record["id"], "", 'p'};
  try {
    out.result = check(op, group, record) ? 'p' : 's';
  } catch (const std::exception& e) {
    out.result = 'f';
    out.message = e.what();
  }
  for (char& c : out.message)
    if (c == '\n') c = ' ';
  return out;
}

struct Job {
  const std::string* level;
  Check check;
  const Json* record;
};

/// A size that runs away fails to allocate instead of taking the machine's memory. (Sanitizers need all of the address
/// space.)
void limit_memory() {
#ifndef __SANITIZE_ADDRESS__
  constexpr rlim_t kBytes = rlim_t{6} << 30;
  rlimit limit{kBytes, kBytes};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

/// Runs jobs from `start` on in a child; gives the outcomes it managed and whether it died.
bool run_child(const Operator& op, const Group& group, const std::vector<Job>& jobs, size_t start,
               std::vector<Outcome>& outcomes) {
  int ends[2];
  if (pipe(ends) != 0) fail("cannot make a pipe");
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    FILE* out = fdopen(ends[1], "w");
    alarm(120);
    limit_memory();
    for (size_t i = start; i < jobs.size(); ++i) {
      Outcome o = run_check(*jobs[i].level, jobs[i].check, op, group, *jobs[i].record);
      std::fprintf(out, "%c\t%s\t%s\t%s\n", o.result, o.level.c_str(), o.id.c_str(), o.message.substr(0, 300).c_str());
      std::fflush(out);
    }
    std::fflush(out);
    _exit(0);
  }
  close(ends[1]);
  FILE* in = fdopen(ends[0], "r");
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, in) > 0) {
    std::stringstream text(line);
    Outcome o;
    std::string result;
    std::getline(text, result, '\t');
    std::getline(text, o.level, '\t');
    std::getline(text, o.id, '\t');
    std::getline(text, o.message);
    o.result = result.empty() ? 'f' : result[0];
    outcomes.push_back(o);
  }
  std::free(line);
  std::fclose(in);
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;  // a sanitizer ends it with a status
}

std::vector<Outcome> run_operator(const Operator& op, const Group& group, const std::vector<Job>& jobs) {
  std::vector<Outcome> outcomes;
  while (outcomes.size() < jobs.size()) {
    bool died = run_child(op, group, jobs, outcomes.size(), outcomes);
    if (died && outcomes.size() < jobs.size())
      outcomes.push_back({*jobs[outcomes.size()].level, (*jobs[outcomes.size()].record)["id"], "crashed", 'f'});
  }
  return outcomes;
}

const Operator* operator_of(const std::string& name) { return find_operator(name); }

class Report {
 public:
  explicit Report(Options options) : options_(std::move(options)) {}

  int run() {
    Json index = Json::parse(read_gzip(options_.folder + "/index.json.gz"));
    std::map<std::string, std::set<std::string>> groups;
    for (const auto& [name, entry] : index["ops"].items()) {
      if (name.find(options_.op) == std::string::npos || !operator_of(name)) continue;
      ++operators_;
      if (entry.contains("group") && !entry["group"].is_null()) groups[entry["group"]].insert(name);
      bool reads_errors = options_.levels.count("errors") || options_.levels.count("functional");
      if (entry.value("errors", 0) > 0 && reads_errors) groups["errors"].insert(name);
    }
    for (const auto& [name, operators] : groups)
      if (options_.group.empty() || options_.group == name) check_group(name, operators);
    return print(index["ops"].size());
  }

 private:
  void check_group(const std::string& name, const std::set<std::string>& operators) {
    Group group = Group::load(options_.folder, name);
    std::map<std::string, std::vector<Job>> jobs;
    for (const auto& [level, check] : kLevels) {
      bool fits = name == "errors" ? level == "errors" || level == "functional" : level != "errors";
      if (!options_.levels.count(level) || !fits) continue;
      for (const Json& record : group.records())
        if (operators.count(record["op"])) jobs[record["op"]].push_back({&level, check, &record});
    }
    for (const auto& [op, list] : jobs)
      for (const Outcome& o : run_operator(*operator_of(op), group, list)) note(op, o);
  }

  void note(const std::string& op, const Outcome& o) {
    if (o.result == 's') return;
    Count& total = totals_[o.level];
    Count& own = by_operator_[op][o.level];
    ++(o.result == 'p' ? total.passed : total.failed);
    ++(o.result == 'p' ? own.passed : own.failed);
    if (o.result == 'f' && options_.verbose)
      std::printf("FAIL %s %s %s: %s\n", o.level.c_str(), op.c_str(), o.id.c_str(), o.message.c_str());
  }

  int print(size_t all) const {
    for (const auto& [op, levels] : by_operator_) {
      std::string line;
      for (const auto& [level, count] : levels)
        if (count.failed) line += concat("  ", level, " ", count.passed, "/", count.passed + count.failed);
      if (!line.empty()) std::printf("%-50s%s\n", op.c_str(), line.c_str());
    }
    write_scores();
    std::printf("%zu of %zu operators\n", operators_, all);
    int passed = 0, failed = 0, below = 0;
    std::map<std::string, double> floor = read_floor();
    for (const auto& [level, check] : kLevels) {
      auto found = totals_.find(level);
      if (found == totals_.end()) continue;
      const Count& c = found->second;
      double share = 100.0 * c.passed / std::max(1, c.passed + c.failed);
      bool low = floor.count(level) && share < floor[level];
      below += low;
      std::printf("%s: %d passed, %d failed (%.2f %%)%s\n", level.c_str(), c.passed, c.failed, share,
                  low ? "  BELOW THE FLOOR" : "");
      passed += c.passed;
      failed += c.failed;
    }
    if (totals_.count("vmap")) print_batching();
    std::printf("%d passed, %d failed\n", passed, failed);
    return below ? 1 : 0;
  }

  /// How the operators that vmap gets right are batched.
  void print_batching() const {
    std::map<transform::Batching, int> count;
    for (const auto& [name, levels] : by_operator_) {
      auto found = levels.find("vmap");
      if (found == levels.end() || found->second.failed || !found->second.passed) continue;
      ++count[transform::batching_of(*operator_of(name))];
    }
    std::printf("vmap equals a loop: %d operators by rule, %d by their parts, %d one by one\n",
                count[transform::Batching::Rule], count[transform::Batching::Parts], count[transform::Batching::Loop]);
  }

  /// A line for each operator: its name, and how many of its records passed and failed on all levels together.
  void write_scores() const {
    if (options_.scores.empty()) return;
    std::ofstream out(options_.scores);
    for (const auto& [op, levels] : by_operator_) {
      Count sum;
      for (const auto& [level, count] : levels) {
        sum.passed += count.passed;
        sum.failed += count.failed;
      }
      out << op << '\t' << sum.passed << '\t' << sum.failed << '\n';
    }
  }

  std::map<std::string, double> read_floor() const {
    std::map<std::string, double> out;
    std::ifstream in(options_.floor);
    std::string level;
    for (double share; in >> level >> share;) out[level] = share;
    return out;
  }

  Options options_;
  size_t operators_ = 0;
  std::map<std::string, Count> totals_;
  std::map<std::string, std::map<std::string, Count>> by_operator_;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    auto next = [&]() -> std::string {
      if (i + 1 >= argc) fail<ValueError>(arg, " needs a value");
      return argv[++i];
    };
    if (arg == "--op") o.op = next();
    else if (arg == "--group") o.group = next();
    else if (arg == "--data") o.folder = next();
    else if (arg == "--floor") o.floor = next();
    else if (arg == "--scores") o.scores = next();
    else if (arg == "--verbose") o.verbose = true;
    else if (arg == "--level") {
      o.levels.clear();
      std::stringstream list(next());
      for (std::string level; std::getline(list, level, ',');) o.levels.insert(level);
    } else
      fail<ValueError>(
          "usage: golden_report [--op SUBSTRING] [--level LIST] [--group NAME] [--data FOLDER] [--floor FILE] "
          "[--scores FILE] [--verbose]");
  }
  return o;
}

}  // namespace
}  // namespace umbra::golden

int main(int argc, char** argv) {
  umbra::set_warning_handler([](const std::string&) {});  // records give outputs of other sizes on purpose
  try {
    return umbra::golden::Report(umbra::golden::parse(argc, argv)).run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "golden_report: %s\n", e.what());
    return 2;
  }
}
