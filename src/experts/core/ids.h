// Names of the objects that policies decide about. Only ids, sizes and times: no bytes, threads or devices.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "base/bytes.h"

namespace sluice::experts {

// One routed expert: sparse layer (dense layers are not counted) and index within it (SPEC §0).
struct ExpertId {
  std::uint16_t layer = 0;
  std::uint16_t index = 0;
  auto operator<=>(const ExpertId&) const = default;
};

// The smallest pieces that are stored, fetched and cached separately (SPEC §5.1, docs/architecture.md).
enum class Part : std::uint8_t { kFull = 1, kSm = 2, kExp = 4, kMsb = 8, kLsb = 16 };

// A set of parts.
class Parts {
 public:
  constexpr Parts() = default;
  constexpr Parts(Part part) : bits_(static_cast<std::uint8_t>(part)) {}  // NOLINT: a part is a set of one
  constexpr bool has(Part part) const { return (bits_ & static_cast<std::uint8_t>(part)) != 0; }
  constexpr bool has_all(Parts other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint8_t bits() const { return bits_; }
  constexpr Parts operator|(Parts other) const { return from_bits(bits_ | other.bits_); }
  constexpr Parts operator-(Parts other) const { return from_bits(bits_ & ~other.bits_); }
  constexpr bool operator==(const Parts&) const = default;
  static constexpr Parts from_bits(unsigned bits) {
    Parts parts;
    parts.bits_ = static_cast<std::uint8_t>(bits);
    return parts;
  }

 private:
  std::uint8_t bits_ = 0;
};
constexpr Parts operator|(Part a, Part b) { return Parts(a) | Parts(b); }

// Residency states of the split family (SPEC §1.3): F full, C = sm + exp, S = sm, E = exp, M absent.
enum class State : char { kF = 'F', kC = 'C', kS = 'S', kE = 'E', kM = 'M' };
// Legal sets only: {}, {exp}, {sm}, {sm, exp}, {full}. Any other set trips a check.
State state_of(Parts parts);

// Sets that may be resident (SPEC §5.1): the sets of state_of, {msb} and {msb, lsb}.
bool is_legal(Parts parts);
// Whether these parts make a view without a read: full, sm + exp, or msb.
bool is_computable(Parts parts);

// Bytes of one expert's parts in memory (0: the family has no such part).
struct ExpertBytes {
  Bytes full = 0, sm = 0, exp = 0, msb = 0, lsb = 0;
  Bytes of(Parts parts) const;
};

// Sizes of all experts, by id. All layers may differ in number and size of experts.
class ExpertSizes {
 public:
  virtual ~ExpertSizes() = default;
  virtual ExpertBytes bytes(ExpertId id) const = 0;
};

}  // namespace sluice::experts
