module go.withmatt.com/connect-brotli

go 1.25.0

require connectrpc.com/connect v1.16.2
