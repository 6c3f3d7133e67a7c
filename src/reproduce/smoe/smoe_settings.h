// What SMoE was evaluated on: a model, its α and a card each, as far as the paper says what these are (SPEC
// §2.1; §10, G1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/machine/hybrid_machine.h"

namespace sluice::reproduce {

struct SmoeSetting {
  std::string name;   // "S1" …
  std::string model;  // whose shape routing has
  std::uint32_t layers = 0, experts = 0, top_k = 0;
  double alpha = 0;
  std::string machine;        // one of hybrid_machines(), or a band of them
  bool has_llamacpp = false;  // the paper compares with llama.cpp
};
const std::vector<SmoeSetting>& smoe_settings();

// One machine of a setting, with one size of its card's memory: where a row of results stands.
struct SmoePlace {
  std::string label;  // the machine's name; and its slots where the paper gives the card two sizes
  const SmoeSetting* setting = nullptr;
  const lab::HybridMachine* machine = nullptr;  // one of hybrid_machines()
  std::uint32_t slots = 0;                      // slots of a layer
};
// In the order of the settings; the slowest host of a band first.
const std::vector<SmoePlace>& smoe_places();
// The one place that the paper's numbers settle: its host and its card's memory are known. REQUIRES: a place
// has the label.
const SmoePlace& smoe_place(const std::string& label);
inline constexpr const char* kSmoeKnownPlace = "smoe-s3";

}  // namespace sluice::reproduce
