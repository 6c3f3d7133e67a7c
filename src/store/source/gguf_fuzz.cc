// Reads any bytes as a GGUF file: either an Error, or tensors that lie in the file one behind the other.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "store/source/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;         // NOLINT
  using namespace sluice::store;  // NOLINT
  static const int memory = ::memfd_create("input", 0);
  SLUICE_CHECK(memory >= 0 && ::ftruncate(memory, 0) == 0 &&
               ::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size));
  try {
    const GgufHeader header = read_gguf(InputFile::open("/proc/self/fd/" + std::to_string(memory)));
    Bytes end = header.data;
    for (const GgufTensor& tensor : header.tensors) {
      SLUICE_CHECK(tensor.offset >= end && tensor.offset + tensor.length <= size);
      end = tensor.offset + tensor.length;
    }
  } catch (const Error&) {
  }
  return 0;
}
