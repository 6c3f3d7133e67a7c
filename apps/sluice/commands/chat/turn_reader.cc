#include "commands/chat/turn_reader.h"

#include <string>
#include <string_view>
#include <utility>

namespace sluice::app {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
const std::string kPrompt = "> ", kFurther = ". ";

}  // namespace

ReadLine TurnReader::read() {
  ReadLine turn = lines_.read(kPrompt);
  if (turn.end != LineEnd::kLine) return turn;
  const bool quoted = turn.text.starts_with(kQuotes);
  if (quoted) turn.text.erase(0, kQuotes.size());
  const auto goes_on = [&] { return quoted ? !turn.text.ends_with(kQuotes) : turn.text.ends_with('\\'); };
  while (goes_on()) {
    if (!quoted) turn.text.pop_back();
    ReadLine next = lines_.read(kFurther);
    if (next.end == LineEnd::kEndOfInput) return turn;
    turn.text += '\n' + next.text;
    if (next.end == LineEnd::kInterrupted) {
      turn.end = next.end;
      return turn;
    }
  }
  if (quoted) turn.text.resize(turn.text.size() - kQuotes.size());
  return turn;
}

}  // namespace sluice::app
