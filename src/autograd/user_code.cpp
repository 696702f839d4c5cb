#include "autograd/user_code.h"

namespace umbra::autograd {

namespace {
thread_local uint64_t g_calls = 0;
}

uint64_t user_code_calls() { return g_calls; }
void note_user_code() { ++g_calls; }

}  // namespace umbra::autograd
