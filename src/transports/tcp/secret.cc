#include <cstring>

#include "transports/tcp/detail/impl.h"
#include "transports/tcp/tcp.h"

namespace headway::tcp {

void Tcp::set_secret(const unsigned char (&secret)[16]) {
  memcpy(impl_->config.secret, secret, sizeof secret);
}

}  // namespace headway::tcp
