#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, ShowSpecial special)
    : text_(tokenizer.start_text(special)) {}

std::string StreamDecoder::append(TokenId id) { return text_->append(id); }

std::string StreamDecoder::finish() { return text_->finish(); }

}  // namespace sluice::tokenizer
