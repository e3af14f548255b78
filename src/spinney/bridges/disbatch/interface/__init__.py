"""The command interface of Disbatch 4: the REST API that its clients use, and one page for browsers.

    spinney disbatch serve --mongo mongodb://host1,host2/?replicaSet=rs0 --database disbatch

- ``application``: ``make_interface`` puts the routes together. ``service``: what all of them share.
- ``nodes``, ``queues``, ``tasks``, ``balancer``: the routes. ``actions``: what they do with tasks.
- ``parameters``, ``filters``, ``wire``: from requests to filters, and from documents to replies.
- ``balance``: how many tasks each queue may run now, as pure functions.
- ``access``: users, tokens, and protection from pages of other sites. ``page``: the page. ``cli``: the commands.
- ``settings``: what an interface may do, and how its replies look."""
