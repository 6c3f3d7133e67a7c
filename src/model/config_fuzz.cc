// Reads any bytes as config.json: parse_config returns or throws Error, and every accepted config has a
// tensor table.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json/json.h"
#include "model/architecture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  try {
    const Json json = parse_json({reinterpret_cast<const char*>(data), size}, "config.json");
    model::ModelConfig config = model::parse_config(json, "config.json");
    model::parse_generation_config(json, "generation_config.json", config);
    for (std::uint32_t layer = 0; layer < config.layers; ++layer) config.window(layer);
    if (std::uint64_t{config.layers} * config.moe.experts < 4096) model::tensor_table(config);
  } catch (const Error&) {
  }
  return 0;
}
