// The number that recent versions of PyTorch put into a symbol's name: SHA-256 of the source's name, modulo 100.
#pragma once

#include <cstdint>
#include <string_view>

namespace umbra::sym {

/// `source_number("L['x'].size()[0]")` is 77, so that dimension's symbol is s77.
uint32_t source_number(std::string_view source);

}  // namespace umbra::sym
