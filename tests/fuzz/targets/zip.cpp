// Zip archives: the structure, and the contents of every entry.
#include "target.h"

void umbra::fuzz::run(std::string_view input) {
  io::ZipReader zip(io::Bytes(std::string(input)), "input");
  zip.root();
  for (const io::ZipEntry& entry : zip.entries()) {
    try {
      zip.read(entry);
    } catch (const Error&) {  // one damaged entry says nothing of the others
    }
  }
}
