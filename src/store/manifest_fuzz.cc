// Reads any text with a correct checksum as a manifest: either an Error, or a manifest that is written and
// read back the same.
#include "store/manifest.h"

#include <cstddef>
#include <cstdint>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;         // NOLINT
  using namespace sluice::store;  // NOLINT
  std::string text(reinterpret_cast<const char*>(data), size);
  append_checksum(text);
  try {
    const Manifest manifest = parse_manifest(text, "input");
    const std::string written = write_manifest(manifest);
    SLUICE_CHECK(write_manifest(parse_manifest(written, "written")) == written);
  } catch (const Error& error) {
    SLUICE_CHECK(error.where() != "written", error.what());
  }
  return 0;
}
