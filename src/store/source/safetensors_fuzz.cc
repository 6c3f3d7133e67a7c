// Reads any bytes as a safetensors file: either an Error, or tensors that fill the file exactly.
#include "store/source/safetensors.h"

#include <cstddef>
#include <cstdint>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;         // NOLINT
  using namespace sluice::store;  // NOLINT
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const SafetensorsHeader header = parse_safetensors(bytes, size, "input");
    Bytes end = header.bytes;
    for (const SafetensorsTensor& tensor : header.tensors) {
      SLUICE_CHECK(tensor.offset == end);
      SLUICE_CHECK(tensor.info.elements() * dtype_bytes(tensor.info.dtype) == tensor.length);
      end += tensor.length;
    }
    SLUICE_CHECK(end == size);
  } catch (const Error&) {
  }
  return 0;
}
