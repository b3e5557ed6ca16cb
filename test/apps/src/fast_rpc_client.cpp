// A client as rmw_fastrtps makes it, calling at a steady rate. Several servers
// may answer the same request: the first reply counts.
#include "fast.hpp"
#include "ledger.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace {

struct Client {
  client_options options;
  ServiceEnd end;
  ledger * book;
  Octets request;

  // Waits until enough servers are there, both their readers and their writers.
  void await_servers()
  {
    const int64_t until = monotonic_ns() + static_cast<int64_t>(options.match_timeout_s * 1e9);
    for (;;) {
      fdds::PublicationMatchedStatus readers;
      fdds::SubscriptionMatchedStatus writers;
      end.writer->get_publication_matched_status(readers);
      end.reader->get_subscription_matched_status(writers);
      if (readers.current_count >= options.servers && writers.current_count >= options.servers)
        break;
      if (stopping() || monotonic_ns() > until)
        die("found %d readers and %d writers of the service, wanted %lld servers", readers.current_count,
          writers.current_count, static_cast<long long>(options.servers));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.settle_ms));
  }

  // Sends a request that names the reader of the reply, as rmw_fastrtps does.
  // The reply will name that reader and the request's sequence number.
  void send()
  {
    rtps::WriteParams params;
    params.related_sample_identity().writer_guid() = end.reader->guid();
    const int64_t number = ledger_send(book);
    if (!end.writer->write(&request, params))
      die("cannot write a request");
    if (static_cast<int64_t>(params.sample_identity().sequence_number().to64long()) != number)
      die("request %lld has another number in DDS", static_cast<long long>(number));
  }

  void take_replies()
  {
    Octets reply;
    fdds::SampleInfo info;
    while (end.reader->take_next_sample(&reply, &info) == ReturnCode_t::RETCODE_OK) {
      const auto & to = info.related_sample_identity;
      if (!info.valid_data || (to.writer_guid() != end.reader->guid() && to.writer_guid() != end.writer->guid()))
        continue;
      char by[NAME_MAX_LEN + 1];
      reply_name(reply.data(), reply.size(), by);
      ledger_reply(book, static_cast<int64_t>(to.sequence_number().to64long()), by);
    }
  }

  void run()
  {
    int64_t next = monotonic_ns(), sent = 0, listen_until = 0;
    while (!stopping() && (listen_until == 0 || monotonic_ns() < listen_until)) {
      const bool sending = options.count == 0 || sent < options.count;
      const int64_t now = monotonic_ns();
      if (sending && now >= next) {
        send();
        sent++;
        next += static_cast<int64_t>(1e9 / options.rate);
        continue;
      }
      const int64_t most = 20 * 1000 * 1000;
      const int64_t pause = sending ? std::min(next - now, most) : most;
      end.reader->wait_for_unread_message({0, static_cast<uint32_t>(pause)});
      take_replies();
      ledger_expire(book);
      if (!sending && listen_until == 0 && ledger_settled(book))
        listen_until = monotonic_ns() + static_cast<int64_t>(options.linger_ms * 1e6);
    }
  }
};

}  // namespace

int main(int argc, char ** argv)
{
  Client c{};
  parse_client_options(argc, argv, &c.options);
  setup_program();
  c.end = new_service_end(c.options.service, c.options.domain, Role::client, nullptr, nullptr);
  c.request.resize(static_cast<size_t>(c.options.size));
  put_request(c.request.data(), c.request.size(), static_cast<uint32_t>(c.options.reply_size));
  c.await_servers();
  c.book = ledger_open(&c.options);
  c.run();
  finish(ledger_close(c.book), delete_service_end, &c.end);
}
