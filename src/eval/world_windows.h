// Windows of a text, each computed at once in many settings: in worlds (experts/worlds.h) that begin anew
// with the window. Its prompt is computed once for all of them, and an expert that several worlds use in a
// step is read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/worlds.h"
#include "eval/stepped_windows.h"

namespace sluice::eval {

// A window in one world.
struct WorldScore {
  WindowScore window;
  experts::WorldCounts counts;
};

struct WindowOfWorlds {
  WindowScore plain;                                   // by the engine's own policies, as one prompt
  std::vector<std::optional<WorldScore>> worlds = {};  // empty: not computed
};

Json to_json(const WindowOfWorlds& window);
// Error(kInvalid) unless it has this many worlds.
WindowOfWorlds window_of_worlds_from_json(const Json& json, const std::string& name, std::size_t worlds);

// Thread-compatible. `engine` must outlive it: one with engine::make_room_for_worlds(), without a device,
// whose experts are computed high.
class WorldWindows {
 public:
  WorldWindows(engine::Engine& engine, std::span<const engine::WorldPlan> plans,
               const SteppedWindows& windows);

  // Computes the plain window `w` of the text, and the worlds that `wanted` (by world) is not 0 for. The
  // scores are those of an engine of its own for each world, to the last bit. Calls `go_on` with the
  // tokens of the window that all worlds have taken: Error(kInterrupted) when it returns false.
  WindowOfWorlds score(std::span<const tokenizer::TokenId> text, std::size_t w,
                       std::span<const std::uint8_t> wanted,
                       const std::function<bool(std::size_t taken)>& go_on);

 private:
  engine::Engine& engine_;
  const std::span<const engine::WorldPlan> plans_;
  const SteppedWindows windows_;
};

}  // namespace sluice::eval
