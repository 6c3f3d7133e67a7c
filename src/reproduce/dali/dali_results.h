// What the stages of DALI's reproduction found; rows, sections and pictures are made of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/replay/synthetic_routing.h"
#include "reproduce/dali/dali_models.h"
#include "reproduce/dali/dali_replays.h"
#include "reproduce/dali/dali_trained.h"

namespace sluice::reproduce {

// Mean time to assign the experts of one event on this machine.
struct AssignTime {
  std::string placement;
  double seconds = 0;
};

struct DaliResults {
  // Models whose rows there are; the tables below have cells of no other.
  struct Routing {
    const DaliModel* model = nullptr;
    std::string source;  // "recorded, 612 tokens of one text" …
    lab::RoutingFacts facts;
    std::map<std::uint32_t, double> active;  // by batch: distinct experts of a step and layer
    std::map<std::uint32_t, std::vector<double>> top3_overlap;  // by batch, of layers 1, 4, 8 and 16
  };
  std::vector<Routing> routings;
  std::string missing;  // models without routing, and why; may be empty

  DaliTable sweep;       // all systems, half of the experts on the device
  DaliTable assignment;  // placements, with residents that never change
  DaliTable ladder;      // a quarter of the experts on the device
  DaliTable prefetches;  // variants and sizes, on top of the ladder's second step
  DaliTable caches;      // caches with the same assignment and prefetch
  DaliTable windows;     // w_size and u_size
  DaliTable shares;      // dali with more and more slots
  DaliTable few_slots;   // HybriMoE on Mixtral with 1 to 4 slots
  DaliTable lengths;     // Mixtral; `batch` is the length of the output
  // D-hit of every eight decode steps: Mixtral, half of the experts, w = 8, u = 1.
  std::vector<double> hits_over_time;
  std::vector<AssignTime> assign_times;                  // DeepSeek, B = 16
  std::vector<std::pair<std::string, double>> decide_s;  // by system: a decode step's decisions, B = 8
  std::optional<DaliTrained> trained;
};

}  // namespace sluice::reproduce
