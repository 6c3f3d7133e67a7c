// One value per expert, found by id in O(1), grown when an id is first written. Never iterated in an order
// that depends on addresses or hashes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "experts/core/ids.h"

namespace sluice::experts {

template <class T>
class ExpertTable {
 public:
  // The value of `id`, value-initialised if it was never written. The reference is valid until the next at().
  T& at(ExpertId id) {
    T* value = find(id);
    return value != nullptr ? *value : made(id);
  }

  // Null if `id` was never written; where a neighbour was written, it may be a value-initialised value.
  const T* find(ExpertId id) const {
    return id.layer < layers_.size() && id.index < layers_[id.layer].size() ? &layers_[id.layer][id.index]
                                                                            : nullptr;
  }
  T* find(ExpertId id) { return const_cast<T*>(std::as_const(*this).find(id)); }

  // Calls visit(id, value) for every value ever made, in ascending id.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      for (std::size_t index = 0; index < layers_[layer].size(); ++index) {
        visit(ExpertId{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(index)},
              layers_[layer][index]);
      }
    }
  }

 private:
  // Rare, and out of the way of at(), which is called several times for every expert of every event.
  [[gnu::noinline, gnu::cold]] T& made(ExpertId id) {
    if (id.layer >= layers_.size()) layers_.resize(id.layer + std::size_t{1});
    std::vector<T>& layer = layers_[id.layer];
    if (id.index >= layer.size()) layer.resize(id.index + std::size_t{1});
    return layer[id.index];
  }

  std::vector<std::vector<T>> layers_;
};

}  // namespace sluice::experts
