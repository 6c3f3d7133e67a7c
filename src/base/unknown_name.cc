#include "base/unknown_name.h"

#include <algorithm>
#include <cstddef>

namespace sluice {
namespace {

constexpr std::size_t kFew = 4;  // names that are listed as words of a sentence

// Optimal string alignment distance.
std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({change, d[i - 1][j] + 1, d[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  std::size_t best_slips = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t most = std::max(word.size(), candidate.size());
    const std::size_t least = most - std::min(word.size(), candidate.size());
    if (least >= best_slips) continue;  // a long text of a user need not be compared
    const std::size_t count = slips(word, candidate);
    if (count < best_slips && count < most) {
      best = candidate;
      best_slips = count;
    }
  }
  return best;
}

std::string listed(std::span<const std::string> names, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? ' ' + std::string(last) + ' ' : ", ";
    text += names[i];
  }
  return text;
}

Error unknown_name(std::string_view where, std::string_view name, const std::vector<std::string>& known,
                   std::string_view message, std::string_view otherwise) {
  std::string expected = known.size() > kFew ? "one of " : listed(known, "or");
  if (known.size() > kFew)
    for (const std::string& one : known) expected += (&one == &known.front() ? "" : ", ") + one;
  const std::string meant = nearest(name, known);
  return Error(ErrorKind::kUsage, message)
      .in(where)
      .expected(expected)
      .found('"' + std::string(name) + '"')
      .fix(meant.empty() ? std::string(otherwise) : "did you mean " + meant + "?");
}

}  // namespace sluice
