// Small traces written byte by byte from docs/trace-format.md only, for tests of the reader and the writer.
// Header only; production code does not include it.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <string>

#include "trace/routing_trace.h"

namespace sluice::trace {

template <class Number>
std::string le(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
inline std::string u32(std::uint64_t number) { return le(static_cast<std::uint32_t>(number)); }
inline std::string u64(std::uint64_t number) { return le(number); }
inline std::string sum(const std::string& bytes) { return u64(XXH3_64bits(bytes.data(), bytes.size())); }

inline std::string record(std::uint32_t kind, const std::string& payload) {
  const std::string head = u32(kind) + u32(payload.size());
  return head + sum(head).substr(0, 4) + payload + sum(payload);
}
inline std::string file_start(const std::string& json, std::uint32_t version = 1) {
  const std::string start = "SLTRACE\n" + u32(version) + u32(json.size()) + json;
  return start + sum(start);
}

// Two layers of three experts, top 2; layer 1's experts differ in size.
inline TraceHeader small_header() {
  TraceHeader header;
  header.format = "trace";
  header.architecture = "qwen2_moe";
  header.layers = 2;
  header.experts = 3;
  header.top_k = 2;
  header.identity = 0x0123456789abcdefu;
  header.sizes.emplace(2, 3);
  for (std::uint16_t e = 0; e < 3; ++e) {
    header.sizes->set({0, e}, {.full = 4096}, 8192);
    header.sizes->set({1, e}, {.full = 4096, .sm = 2048, .exp = 100u + e}, 8192, 512);
  }
  return header;
}
inline const std::string kSmallJson =
    R"({"architecture":"qwen2_moe","experts":3,"identity":"0123456789abcdef","layers":2,"sizes":{)"
    R"("disk":[8192,8192],"exp":[0,[100,101,102]],"exp_disk":[0,512],"full":[4096,4096],"sm":[0,2048]},"top_k":2})";
inline const std::string kRunJson = R"({"cache":"lru","seed":0})";

// One prefill step of two tokens and one decode step of one; the second token of layer 1 has one expert only.
inline std::string small_file() {
  std::string bytes = file_start(kSmallJson) + record(1, kRunJson);
  bytes += record(2, u64(0) + u32(0) + u32(2) + u32(1) + u32(0) + u32(2) + u32(0) + le(std::int32_t{7}) +
                         le(std::int32_t{9}));
  bytes += record(3, u64(0) + u32(0) + u32(2) + u32(4) + u32(0) + u32(2) + u32(4) + le(std::uint16_t{0}) +
                         le(std::uint16_t{2}) + le(std::uint16_t{1}) + le(std::uint16_t{2}) + le(0.5f) +
                         le(0.25f) + le(0.125f) + le(0.75f) + le(1.f) + le(-1.f) + le(2.f) + le(0.f) +
                         le(3.f) + le(4.f));
  bytes += record(3, u64(0) + u32(1) + u32(2) + u32(3) + u32(0) + u32(2) + u32(3) + le(std::uint16_t{0}) +
                         le(std::uint16_t{1}) + le(std::uint16_t{2}) + le(0.5f) + le(0.25f) + le(1.f) +
                         le(9.f) + le(8.f) + le(7.f) + le(6.f) + le(5.f) + le(4.f));
  bytes += record(2, u64(1) + u32(1) + u32(1) + u32(1) + u32(0) + u32(1) + u32(2) + le(std::int32_t{-3}));
  for (std::uint32_t layer = 0; layer < 2; ++layer)
    bytes += record(3, u64(1) + u32(layer) + u32(1) + u32(1) + u32(0) + u32(1) + le(std::uint16_t{1}) +
                           le(1.f) + le(1.f) + le(2.f) + le(3.f));
  return bytes;
}

// The same model; predictions of two predictors, and gate inputs of two floats.
inline TraceHeader small_header_2() {
  TraceHeader header = small_header();
  header.ahead = {"stream", "stream+layer"};
  header.gate_inputs = 2;
  return header;
}
inline const std::string kSmallJson2 =
    R"({"ahead":["stream","stream+layer"],)" + kSmallJson.substr(1, kSmallJson.find("\"identity\"") - 1) +
    R"("gate_inputs":2,)" + kSmallJson.substr(kSmallJson.find("\"identity\""));

inline std::string layer_fields(std::uint64_t step, std::uint32_t layer, std::uint32_t tokens) {
  return u64(step) + u32(layer) + u32(tokens);
}

// One decode step of one token, with everything that version 2 adds.
inline std::string small_file_2() {
  std::string bytes = file_start(kSmallJson2, 2) + record(1, kRunJson);
  bytes += record(2, u64(0) + u32(1) + u32(1) + u32(1) + u32(0) + u32(1) + u32(9) + le(std::int32_t{7}));
  bytes += record(5, layer_fields(0, 0, 1) + le(0.5f) + le(-0.5f));
  bytes += record(3, layer_fields(0, 0, 1) + u32(1) + u32(0) + u32(1) + le(std::uint16_t{1}) + le(1.f) +
                         le(1.f) + le(2.f) + le(3.f));
  bytes += record(4, layer_fields(0, 1, 1) + u32(6) + "stream" + le(4.f) + le(5.f) + le(6.f));
  bytes += record(4, layer_fields(0, 1, 1) + u32(12) + "stream+layer" + le(7.f) + le(8.f) + le(9.f));
  bytes += record(5, layer_fields(0, 1, 1) + le(0.25f) + le(-0.25f));
  bytes += record(3, layer_fields(0, 1, 1) + u32(1) + u32(0) + u32(1) + le(std::uint16_t{2}) + le(1.f) +
                         le(3.f) + le(2.f) + le(1.f));
  return bytes;
}

}  // namespace sluice::trace
