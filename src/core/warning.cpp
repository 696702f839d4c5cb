#include "umbra/core/warning.h"

#include <atomic>
#include <iostream>

namespace umbra {

namespace {
void print_warning(const std::string& text) { std::cerr << "Warning: " << text << std::endl; }
std::atomic<WarningHandler> g_handler{print_warning};
std::atomic<bool> g_always = false;
}  // namespace

void set_warning_handler(WarningHandler handler) { g_handler = handler ? handler : print_warning; }
void emit_warning(const std::string& text) { g_handler.load()(text); }
void set_warns_always(bool on) { g_always = on; }
bool tells_once(std::atomic<bool>& told) { return !told.exchange(true) || g_always; }

}  // namespace umbra
