// Compiled for every processor, unlike the rest of kernels/: it finds out what this one is.
#include "kernels/isa.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "umbra/core/error.h"

namespace umbra::kernels {

namespace {

struct Choice {
  Isa set;
  const char* name;
  bool runs;
};

// The best first. The processor and the operating system are both asked (whether it saves the wide registers).
const auto& choices() {
#define UMBRA_CHOICE(set, condition, ...) {Isa::set, #set, condition},
  static const Choice all[] = {UMBRA_EACH_INSTRUCTION_SET(UMBRA_CHOICE)};
#undef UMBRA_CHOICE
  return all;
}

// All kernels need the least set. Without it there is nothing to run, and when a library is loaded nobody is there yet
// who could catch an exception.
[[gnu::constructor]] void refuse_old_processors() {
  __builtin_cpu_init();
  for (const Choice& choice : choices())
    if (choice.runs) return;
  std::fputs("Umbra needs a processor with AVX2, FMA and F16C (x86-64-v3).\n", stderr);
  std::_Exit(1);
}

Isa choose() {
  const char* wish = std::getenv("UMBRA_ISA");
  std::string names;
  for (const Choice& choice : choices()) {
    names += (names.empty() ? "" : ", ") + std::string(choice.name);
    if (wish ? wish != std::string(choice.name) : !choice.runs) continue;
    check(choice.runs, "UMBRA_ISA=", choice.name, " was asked for, but this processor does not have it");
    return choice.set;
  }
  fail<ValueError>("UMBRA_ISA must be one of ", names, ", but is ", wish);
}
}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

}  // namespace umbra::kernels
