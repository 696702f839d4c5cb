#include "umbra/core/warning.h"

#include <atomic>
#include <iostream>

namespace umbra {

namespace {
void print_warning(const std::string& text) { std::cerr << "Warning: " << text << std::endl; }
std::atomic<WarningHandler> g_handler{print_warning};
}  // namespace

void set_warning_handler(WarningHandler handler) { g_handler = handler ? handler : print_warning; }
void emit_warning(const std::string& text) { g_handler.load()(text); }

}  // namespace umbra
