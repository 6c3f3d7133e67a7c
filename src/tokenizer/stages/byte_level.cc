#include "tokenizer/stages/byte_level.h"

#include <array>

namespace sluice::tokenizer {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  struct Character {
    char bytes[2];
    unsigned char length;
  };
  std::array<Character, 256> character_of{};
  std::array<short, 0x144> byte_of{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (short& byte : alphabet.byte_of) byte = -1;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned c = stands_for_itself(byte) ? byte : next++;
    alphabet.byte_of[c] = static_cast<short>(byte);
    auto& character = alphabet.character_of[byte];
    if (c < 0x80) {
      character = {{static_cast<char>(c), 0}, 1};
    } else {
      character = {{static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))}, 2};
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    const auto& character = kAlphabet.character_of[static_cast<unsigned char>(byte)];
    out.append(character.bytes, character.length);
  }
}

int byte_of_character(char32_t c) { return c < kAlphabet.byte_of.size() ? kAlphabet.byte_of[c] : -1; }

}  // namespace sluice::tokenizer
