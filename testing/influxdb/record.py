"""Sends the requests of requests.py to a server and prints what it answers, one block a request."""

import http.client
import sys
import urllib.parse

from requests import REQUESTS

SHOWN = ("content-type", "content-encoding", "x-influxdb-error", "allow", "www-authenticate")


def ask(address, request):
    method, path, parameters, headers, body = request
    connection = http.client.HTTPConnection(address, timeout=60)
    target = path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
    connection.request(method, target, body=body, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    shown = {name: answer.headers[name] for name in SHOWN if answer.headers[name]}
    return answer.status, shown, content


def show(request, answer):
    method, path, parameters, headers, body = request
    status, shown, content = answer
    target = path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
    text = f"> {method} {urllib.parse.unquote_plus(target)!r}"
    if headers:
        text += f" {headers}"
    if body:
        text += f"\n> {body!r}"
    text += f"\n< {status} {shown}\n"
    try:
        text += content.decode()
    except UnicodeDecodeError:
        text += content.hex()
    return text if text.endswith("\n") else text + "\n"


if __name__ == "__main__":
    for request in REQUESTS:
        print(show(request, ask(sys.argv[1], request)))
